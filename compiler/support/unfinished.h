// Things that must not outlive this process: temporary files and folders, and children that work on them.
// Whoever makes one notes it here and forgets it when it is done; a signal that ends the process, or a fault
// of Firn itself, removes what is noted at that moment.
#pragma once

#include <csignal>
#include <string>
#include <sys/types.h>

namespace firn {

class Unfinished {
public:
  // Each gives a number for forget(), or -1 if the table is full (of 256) or the path too long.
  static int note_file(const std::string& path);
  static int note_folder(const std::string& path); // removed with all that is in it, whoever made that
  static int note_child(pid_t child);              // told to end, and waited for
  static int note_group(pid_t leader);             // a child that leads a process group: all of it
  static void forget(int number);

  // Ends children, then removes files and folders, the last noted first. Safe in a signal handler.
  static void remove_all();
  // Forgets all, in a child process: what is noted belongs to its parent.
  static void disown();
  // From now on remove_all() runs before a signal that nothing else handles ends the process.
  static void remove_all_on_signals();
};

// Holds back the signals that end the process, for the moment between making something and noting it.
class SignalsHeld {
public:
  SignalsHeld();
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  const sigset_t& before() const { return before_; }

private:
  sigset_t before_;
};

} // namespace firn
