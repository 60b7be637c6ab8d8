# Decides whether the CUDA backend is built. Sets GROSR_CUDA_ENABLED and GROSR_CUDA_SUMMARY; and grosr_HAS_CUDA
# in the cache, for projects that have this source in them.
include_guard(GLOBAL)
include(CheckLanguage)

set(GROSR_CUDA_ENABLED OFF)
set(GROSR_CUDA_SUMMARY "off")
set(grosr_cuda_minimum 12.0)  # the first nvcc that knows C++20

if(NOT GROSR_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "GROSR_CUDA is '${GROSR_CUDA}'; use AUTO, ON or OFF.")
endif()

if(GROSR_SANITIZE AND NOT GROSR_CUDA STREQUAL "OFF")
  message(FATAL_ERROR "GROSR_SANITIZE='${GROSR_SANITIZE}' is for the host backend; add -DGROSR_CUDA=OFF "
    "(compute-sanitizer checks CUDA builds).")
endif()

if(NOT GROSR_CUDA STREQUAL "OFF")
  if(NOT CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    # Machine code for A100-class and H100-class GPUs, and PTX for whatever comes after them.
    set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "CUDA architectures to build for")
  endif()
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(GROSR_NVCC nvcc HINTS "$ENV{CUDA_HOME}/bin" "$ENV{CUDA_PATH}/bin" /usr/local/cuda/bin)
    mark_as_advanced(GROSR_NVCC)
    if(GROSR_NVCC)
      set(CMAKE_CUDA_COMPILER "${GROSR_NVCC}")
    endif()
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL grosr_cuda_minimum)
      set(GROSR_CUDA_ENABLED ON)
    endif()
  endif()

  if(GROSR_CUDA_ENABLED)
    find_package(CUDAToolkit ${grosr_cuda_minimum} REQUIRED)
    set(GROSR_CUDA_SUMMARY "${CMAKE_CUDA_COMPILER_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}")
  else()
    if(CMAKE_CUDA_COMPILER)
      set(grosr_cuda_found "nvcc ${CMAKE_CUDA_COMPILER_VERSION} (${CMAKE_CUDA_COMPILER})")
    elseif(GROSR_NVCC)
      set(grosr_cuda_found "${GROSR_NVCC}, which cannot compile with ${CMAKE_CXX_COMPILER}")
    else()
      set(grosr_cuda_found "no nvcc")
    endif()
    if(GROSR_CUDA STREQUAL "ON")
      message(FATAL_ERROR "GROSR_CUDA=ON needs a working nvcc ${grosr_cuda_minimum} or newer; found "
        "${grosr_cuda_found}. Put nvcc on PATH or set CUDACXX, or build with -DGROSR_CUDA=OFF.")
    endif()
    set(GROSR_CUDA_SUMMARY "off (${grosr_cuda_found})")
  endif()
endif()
set(grosr_HAS_CUDA ${GROSR_CUDA_ENABLED} CACHE INTERNAL "Whether grosr::grosr has the CUDA backend")
