# cmake --install: headers, the libraries and a package for find_package(grosr), component `library`; and
# the programs, component `programs`.
include_guard(GLOBAL)

set(grosr_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/grosr")
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME library)
set(grosr_libraries grosr)
set(grosr_not_installed "")
if(TARGET grosr_graph)
  list(APPEND grosr_libraries grosr_graph)
else()
  set(grosr_not_installed REGEX "/grosr/graph$" EXCLUDE)
endif()
install(TARGETS ${grosr_libraries} EXPORT grosrTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.inl" PATTERN "*.h" PATTERN "*.cuh" ${grosr_not_installed})
install(FILES "${GROSR_GENERATED_INCLUDE_DIR}/grosr/version.hpp"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/grosr")
if(TARGET grosr_cli)
  install(TARGETS grosr_cli grosr_bench_program grosr_graph_program RUNTIME
    DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT programs)
endif()

install(EXPORT grosrTargets NAMESPACE grosr:: DESTINATION "${grosr_package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/grosrConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/grosrConfig.cmake" INSTALL_DESTINATION "${grosr_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/grosrConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/grosrConfig.cmake" "${PROJECT_BINARY_DIR}/grosrConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/grosrDevice.cmake" DESTINATION "${grosr_package_dir}")
