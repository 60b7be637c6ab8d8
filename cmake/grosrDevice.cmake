# grosr_device_sources(<target> <file>...)
#
# Adds .cpp (or .cu) files with device code to a target. They are compiled as CUDA by nvcc where the CUDA
# backend is on, and as plain C++ where it is off: the same source serves both. A project that uses it,
# with the package or with GROSR's source in it, calls enable_language(CUDA) itself when grosr_HAS_CUDA.

# nvcc compiles C++20 since 12.0, but CMake 3.25.1 has no name for the flag. For the folder that calls.
macro(grosr_name_cuda_20)
  foreach(dialect STANDARD EXTENSION)
    if(NOT DEFINED CMAKE_CUDA20_${dialect}_COMPILE_OPTION)
      set(CMAKE_CUDA20_${dialect}_COMPILE_OPTION "-std=c++20" ${ARGN})
    endif()
  endforeach()
endmacro()
grosr_name_cuda_20()

function(grosr_device_sources target)
  if(NOT ARGN)
    message(FATAL_ERROR "grosr_device_sources(${target}) was given no files; name at least one .cpp file.")
  endif()
  grosr_name_cuda_20(PARENT_SCOPE)
  target_sources(${target} PRIVATE ${ARGN})
  if(grosr_HAS_CUDA)
    if(NOT CMAKE_CUDA_COMPILER)
      message(FATAL_ERROR "grosr_device_sources(${target}): this grosr was built with CUDA, but this "
        "project has not enabled the language; add enable_language(CUDA) before the call.")
    endif()
    set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES LANGUAGE CUDA)
  endif()
endfunction()

# Since CUDA 13 libcu++ lies in a folder of its own, which only nvcc adds by itself.
function(grosr_cccl_include_dir result)
  set(${result} "" PARENT_SCOPE)
  foreach(folder IN LISTS CUDAToolkit_INCLUDE_DIRS)
    if(EXISTS "${folder}/cccl/cuda/atomic")
      set(${result} "${folder}/cccl" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()
