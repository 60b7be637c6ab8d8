# grosr_split_sources(<pattern> <sources> <device_sources>)
#   Finds PATTERN's files in this folder and those below it; files named *_device.cpp hold device code.
# grosr_use_openmp(<target>)
#   Lets host code use OpenMP where it is found, and says so by GROSR_HAS_OPENMP.
include_guard(GLOBAL)

function(grosr_split_sources pattern sources device_sources)
  file(GLOB_RECURSE all CONFIGURE_DEPENDS "${pattern}")
  set(device ${all})
  list(FILTER device INCLUDE REGEX "_device\\.cpp$")
  list(FILTER all EXCLUDE REGEX "_device\\.cpp$")
  set(${sources} ${all} PARENT_SCOPE)
  set(${device_sources} ${device} PARENT_SCOPE)
endfunction()

# ThreadSanitizer does not know how GCC's OpenMP synchronizes.
if(NOT GROSR_SANITIZE MATCHES "thread")
  find_package(OpenMP QUIET COMPONENTS CXX)
endif()

function(grosr_use_openmp target)
  if(OpenMP_CXX_FOUND)
    target_compile_definitions(${target} PRIVATE GROSR_HAS_OPENMP=1)
    target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
  endif()
endfunction()
