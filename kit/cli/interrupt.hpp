// Ctrl-C. A thread waits for SIGINT and SIGTERM; the command in progress asks `check()` between its
// steps, and leaves by an exception that stops the device's work on the way out.
#pragma once

#include <string>

namespace grosr::tool::interrupt {

/// Thrown by check(). Deliberately no std::exception: no handler of errors takes it for one.
struct interrupted {};

/// Takes over SIGINT and SIGTERM. Call it first in main(), before any thread is made. A command
/// that has not ended 3 s after a signal, or gets a second one, is ended on the spot with exit code
/// 130.
void install();

/// Throws `interrupted` if a signal came. Cheap.
void check();

bool requested();

/// A file to remove when the program is ended on the spot, until it is said to be kept.
void remove_when_cut_off(const std::string& path);
void keep_when_cut_off(const std::string& path);

/// What was begun takes its time after a signal; a second one still ends it on the spot.
void finish_without_limit();

/// Sleeps, but not past a signal; then check().
void sleep_for_seconds(double seconds);

}  // namespace grosr::tool::interrupt
