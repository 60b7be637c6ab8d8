# Sources of this repository's targets. The target `device_code` compiles all device code, and no
# more: what a CUDA build compiles otherwise than a host build.
include_guard(GLOBAL)

# grosr_split_sources(<patterns> <sources> <device_sources>): files that match, those of device code
# (*_device.cpp) apart.
function(grosr_split_sources patterns sources device_sources)
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${patterns})
  set(device ${all})
  list(FILTER device INCLUDE REGEX "_device\\.cpp$")
  list(FILTER all EXCLUDE REGEX "_device\\.cpp$")
  set(${sources} ${all} PARENT_SCOPE)
  set(${device_sources} ${device} PARENT_SCOPE)
endfunction()

if(GROSR_CUDA_ENABLED)
  add_custom_target(device_code)
endif()

# grosr_optimize_by_target(): where it is called, and in what is added from there, how far nvcc optimizes is a
# matter of each target, as nvcc takes -O but once.
macro(grosr_optimize_by_target)
  set(CMAKE_CUDA_FLAGS_RELEASE "-DNDEBUG")
endmacro()

# grosr_sample_device_code(<number>): where it is called, and in what is added from there, only every sixth
# target, beginning with the one of that number, has device code as it ships, for one architecture. That of
# others becomes files of PTX, which no linker takes.
macro(grosr_sample_device_code number)
  set(GROSR_DEVICE_CODE_SAMPLE ${number})
  grosr_optimize_by_target()
endmacro()

# grosr_compile_quickly(<target>): nvcc makes PTX alone of it, and spends little time on it.
function(grosr_compile_quickly target)
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES 90-virtual)
  set(options -O1)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13.0)
    list(APPEND options "SHELL:-Ofc max")
  endif()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${options}>")
endfunction()

# grosr_compile_for_one(<target> <number>): as it ships, for one of the architectures, which the number chooses.
function(grosr_compile_for_one target number)
  list(LENGTH CMAKE_CUDA_ARCHITECTURES count)
  math(EXPR chosen "${number} / 6 % ${count}")
  list(GET CMAKE_CUDA_ARCHITECTURES ${chosen} architecture)
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES ${architecture})
  message(STATUS "grosr ${target}: as it ships, for ${architecture}")
endfunction()

# Whether the next target is one of the sample, and how it is compiled.
function(grosr_take_into_sample target)
  get_property(taken GLOBAL PROPERTY GROSR_TAKEN_INTO_SAMPLE)
  list(LENGTH taken position)
  set_property(GLOBAL APPEND PROPERTY GROSR_TAKEN_INTO_SAMPLE ${target})
  math(EXPR turn "${position} % 6")
  math(EXPR wanted "${GROSR_DEVICE_CODE_SAMPLE} % 6")
  if(turn EQUAL wanted)
    grosr_compile_for_one(${target} ${GROSR_DEVICE_CODE_SAMPLE})
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-O3>")
  else()
    grosr_compile_quickly(${target})
    set_target_properties(${target} PROPERTIES CUDA_PTX_COMPILATION ON)
  endif()
endfunction()

# grosr_own_device_sources(<target> <file>...): as grosr_device_sources(). Where nvcc compiles them they
# are a library of objects, <target>_device_code.
function(grosr_own_device_sources target)
  if(NOT ARGN)
    return()
  endif()
  if(NOT GROSR_CUDA_ENABLED)
    grosr_device_sources(${target} ${ARGN})
    return()
  endif()
  set(code ${target}_device_code)
  add_library(${code} OBJECT)
  grosr_device_sources(${code} ${ARGN})
  target_include_directories(${code} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  target_link_libraries(${code} PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
  if(DEFINED GROSR_DEVICE_CODE_SAMPLE)
    grosr_take_into_sample(${code})
  endif()
  grosr_own_target(${code})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${code}>)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CUDA)
  add_dependencies(device_code ${code})
endfunction()

# grosr_use_openmp(<target> <file>...): these host files use OpenMP where it is found; the macro
# GROSR_HAS_OPENMP says so to the target. ThreadSanitizer does not know how GCC's OpenMP synchronizes.
if(NOT GROSR_SANITIZE MATCHES "thread")
  find_package(OpenMP QUIET COMPONENTS CXX)
endif()

function(grosr_use_openmp target)
  if(OpenMP_CXX_FOUND)
    target_compile_definitions(${target} PRIVATE GROSR_HAS_OPENMP=1)
    target_link_libraries(${target} PRIVATE ${OpenMP_CXX_LIBRARIES})
    set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES
      COMPILE_OPTIONS "${OpenMP_CXX_FLAGS}" SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()
