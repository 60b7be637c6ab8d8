# Generates <grosr/version.hpp> (changes with the version only) and grosr_commit.inc (changes with
# each commit, and is included by src/version.cpp alone, so that a commit recompiles one file).
include_guard(GLOBAL)

set(GROSR_GENERATED_INCLUDE_DIR "${PROJECT_BINARY_DIR}/generated/include")
set(grosr_commit_dir "${PROJECT_BINARY_DIR}/generated/commit")
configure_file("${PROJECT_SOURCE_DIR}/cmake/version.hpp.in"
  "${GROSR_GENERATED_INCLUDE_DIR}/grosr/version.hpp" @ONLY)

set(grosr_write_commit ${CMAKE_COMMAND}
  "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DOUTPUT=${grosr_commit_dir}/grosr_commit.inc"
  -P "${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake")
execute_process(COMMAND ${grosr_write_commit})
add_custom_target(grosr_commit COMMAND ${grosr_write_commit}
  BYPRODUCTS "${grosr_commit_dir}/grosr_commit.inc" COMMENT "Looking up the commit" VERBATIM)

set(grosr_compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
set(grosr_nvcc "")
set(grosr_architectures "")
if(GROSR_CUDA_ENABLED)
  set(grosr_nvcc "nvcc ${CMAKE_CUDA_COMPILER_VERSION}")
  string(REPLACE ";" "," grosr_architectures "${CMAKE_CUDA_ARCHITECTURES}")
endif()
string(TOUPPER "${CMAKE_BUILD_TYPE}" grosr_type)
set(grosr_flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${grosr_type}}")
if(GROSR_CUDA_ENABLED)
  string(APPEND grosr_flags " nvcc: ${CMAKE_CUDA_FLAGS} ${CMAKE_CUDA_FLAGS_${grosr_type}}")
endif()
string(REGEX REPLACE "[\"\\;]" "" grosr_flags "${grosr_flags}")  # it becomes a C++ string
string(REGEX REPLACE " +" " " grosr_flags "${grosr_flags}")
string(STRIP "${grosr_flags}" grosr_flags)
# Read when the target exists: properties of one source file.
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/version.cpp" PROPERTIES
  INCLUDE_DIRECTORIES "${grosr_commit_dir}"
  OBJECT_DEPENDS "${grosr_commit_dir}/grosr_commit.inc"
  COMPILE_DEFINITIONS "GROSR_BUILD_COMPILER=\"${grosr_compiler}\";GROSR_BUILD_NVCC=\"${grosr_nvcc}\";GROSR_BUILD_ARCHITECTURES=\"${grosr_architectures}\";GROSR_BUILD_TYPE=\"${CMAKE_BUILD_TYPE}\";GROSR_BUILD_SANITIZERS=\"${GROSR_SANITIZE}\";GROSR_BUILD_FLAGS=\"${grosr_flags}\"")
