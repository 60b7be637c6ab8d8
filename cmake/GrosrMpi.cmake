# Decides whether worlds of several processes are built. Sets GROSR_MPI_ENABLED and GROSR_MPI_SUMMARY.
include_guard(GLOBAL)

if(NOT GROSR_MPI MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "GROSR_MPI is '${GROSR_MPI}'; use AUTO, ON or OFF.")
endif()

set(GROSR_MPI_ENABLED OFF)
set(GROSR_MPI_SUMMARY "off")
if(NOT GROSR_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX ON)  # the C interface alone
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(GROSR_MPI_ENABLED ON)
    set(GROSR_MPI_SUMMARY "${MPI_CXX_VERSION}")
  elseif(GROSR_MPI STREQUAL "ON")
    message(FATAL_ERROR "GROSR_MPI=ON needs an MPI for C++, and none was found; install libopenmpi-dev, or build "
      "with -DGROSR_MPI=OFF.")
  endif()
endif()
