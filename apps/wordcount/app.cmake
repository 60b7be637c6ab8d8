# OpenMP and Vectorscan (or Hyperscan, whose interface it has) are there to be compared with.
# ThreadSanitizer does not know how GCC's OpenMP synchronizes.
if(NOT GROSR_SANITIZE MATCHES "thread")
  find_package(OpenMP QUIET COMPONENTS CXX)
endif()
if(OpenMP_CXX_FOUND)
  target_compile_definitions(app_wordcount PRIVATE GROSR_HAS_OPENMP=1)
  file(GLOB openmp_sources "${folder}/*openmp*.cpp" "${folder}/check.cpp" "${folder}/reference.cpp")
  set_source_files_properties(${openmp_sources} PROPERTIES
    COMPILE_OPTIONS "${OpenMP_CXX_FLAGS}" SKIP_PRECOMPILE_HEADERS ON)
  target_link_libraries(app_wordcount PRIVATE ${OpenMP_CXX_LIBRARIES})
  if(PkgConfig_FOUND)
    pkg_check_modules(VECTORSCAN QUIET IMPORTED_TARGET libhs)
  endif()
  if(VECTORSCAN_FOUND)
    target_compile_definitions(app_wordcount PRIVATE GROSR_HAS_VECTORSCAN=1)
    target_link_libraries(app_wordcount PRIVATE PkgConfig::VECTORSCAN)
  endif()
endif()
