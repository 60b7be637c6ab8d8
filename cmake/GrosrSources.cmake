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

# grosr_compile_quickly(): where it is called, and in what is added from there, nvcc makes PTX alone, and
# spends little time on it.
macro(grosr_compile_quickly)
  set(CMAKE_CUDA_ARCHITECTURES 90-virtual)
  set(CMAKE_CUDA_FLAGS_RELEASE "-O1 -DNDEBUG")
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13.0)
    string(APPEND CMAKE_CUDA_FLAGS_RELEASE " -Ofc max")
  endif()
endmacro()

# grosr_own_device_sources(<target> <file>...): as grosr_device_sources(). Where nvcc compiles them they
# are a library of objects, <target>_device_code; of PTX, which no linker takes, if GROSR_PTX_ALONE is set.
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
  if(GROSR_PTX_ALONE)
    set_target_properties(${code} PROPERTIES CUDA_PTX_COMPILATION ON)
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
