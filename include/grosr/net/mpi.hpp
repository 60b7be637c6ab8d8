// Worlds whose ranks lie in several processes, by MPI.
//
//   grosr::net::world<count> world({{.where = device}}, {.processes = &grosr::net::mpi()});
//
// docs/internals/messages.md, "Between processes".
#pragma once

#include "grosr/net/transport.hpp"

namespace grosr::net {

/// The processes of an MPI job (mpirun), of MPI_COMM_WORLD; a program that was started without one
/// is a job of one process. Initializes MPI if that was not done, for MPI_THREAD_MULTIPLE, and then
/// finalizes it when the program ends. The first call is to be made by all processes, and before
/// MPI_Finalize. Throws error(not_built) where MPI was not found when GROSR was built, and
/// error(misuse) where MPI was initialized without MPI_THREAD_MULTIPLE, or is over. Thread-safe.
transport& mpi();

}  // namespace grosr::net
