// firn: the command line. Parses arguments and hands over to the driver.
#include "tools/firn/command_line.h"

int main(int argc, char** argv) {
  return firn::tool::run_command_line(argc, argv);
}
