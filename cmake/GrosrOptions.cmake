# Options of the build, and grosr_own_target(): what every target of this repository is compiled with.
include_guard(GLOBAL)

set(GROSR_CUDA AUTO CACHE STRING "Build the CUDA backend: AUTO (when nvcc is found), ON or OFF")
set_property(CACHE GROSR_CUDA PROPERTY STRINGS AUTO ON OFF)
set(GROSR_MPI AUTO CACHE STRING "Worlds of several processes, by MPI: AUTO (when it is found), ON or OFF")
set_property(CACHE GROSR_MPI PROPERTY STRINGS AUTO ON OFF)
set(GROSR_SANITIZE "" CACHE STRING "Sanitizers for host code: 'address,undefined', 'thread' or empty")
option(GROSR_WERROR "Warnings are errors" OFF)
option(GROSR_UNITY_LIBRARIES "Compile host files of the libraries a few together, in half the time" OFF)
option(GROSR_BUILD_GRAPH "Build grosr::graph, algorithms on graphs; needs zlib" ON)
option(GROSR_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(GROSR_BUILD_PROGRAMS "Build the command-line program, applications and examples" ${PROJECT_IS_TOP_LEVEL})

if(GROSR_BUILD_PROGRAMS AND NOT GROSR_BUILD_GRAPH)
  message(FATAL_ERROR "GROSR_BUILD_GRAPH is OFF, but the command-line program is made of it; "
    "add -DGROSR_BUILD_PROGRAMS=OFF, or leave GROSR_BUILD_GRAPH ON.")
endif()

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
  endif()
endif()
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 11)
  message(FATAL_ERROR "grosr needs g++ 11 or newer for C++20; found ${CMAKE_CXX_COMPILER_VERSION} "
    "(${CMAKE_CXX_COMPILER}). Install a newer g++, or pass -DCMAKE_CXX_COMPILER=g++-12.")
endif()

set(GROSR_SANITIZE_FLAGS "")
if(GROSR_SANITIZE)
  if(NOT GROSR_SANITIZE MATCHES "^(address|undefined|thread)(,(address|undefined))*$")
    message(FATAL_ERROR "GROSR_SANITIZE is '${GROSR_SANITIZE}'; use 'address,undefined' or 'thread'.")
  endif()
  set(GROSR_SANITIZE_FLAGS -fsanitize=${GROSR_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  if(GROSR_SANITIZE STREQUAL "address,undefined")
    # A sixth of the time to compile; AddressSanitizer reports what is read or written through null.
    list(APPEND GROSR_SANITIZE_FLAGS -fno-sanitize=null,vptr)
  endif()
endif()

# What tests run under. ThreadSanitizer of GCC 11 to 13 fails to start on kernels with much address
# randomization; without randomization it starts everywhere.
set(GROSR_TEST_LAUNCHER "")
if(GROSR_SANITIZE MATCHES "thread")
  execute_process(COMMAND setarch -R true RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(result EQUAL 0)
    set(GROSR_TEST_LAUNCHER setarch -R)
  endif()
endif()

function(grosr_own_target target)
  set(warnings -Wall -Wextra)
  if(GROSR_WERROR)
    list(APPEND warnings -Werror)
  endif()
  string(REPLACE ";" "," joined_warnings "${warnings}")
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${warnings};${GROSR_SANITIZE_FLAGS}>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${joined_warnings};-lineinfo;--Werror=cross-execution-space-call>")
  if(GROSR_SANITIZE_FLAGS)
    target_link_options(${target} PUBLIC "$<BUILD_INTERFACE:${GROSR_SANITIZE_FLAGS}>")
  endif()
endfunction()

# grosr_own_library(<target>): a library that programs are linked with. Its host files may be compiled together.
function(grosr_own_library target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${GROSR_UNITY_LIBRARIES} UNITY_BUILD_BATCH_SIZE 6)
endfunction()
