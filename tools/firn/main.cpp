// firn: the command line, all of which is in the library.

extern "C" int firn_main(int argc, char** argv);

int main(int argc, char** argv) {
  return firn_main(argc, argv);
}
