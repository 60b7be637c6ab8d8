# cmake --install: headers, the library, the program, and a package for find_package(grosr).
include_guard(GLOBAL)

set(grosr_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/grosr")
install(TARGETS grosr EXPORT grosrTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.inl" PATTERN "*.h" PATTERN "*.cuh")
install(FILES "${GROSR_GENERATED_INCLUDE_DIR}/grosr/version.hpp"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/grosr")
if(TARGET grosr_cli)
  install(TARGETS grosr_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

install(EXPORT grosrTargets NAMESPACE grosr:: DESTINATION "${grosr_package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/grosrConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/grosrConfig.cmake" INSTALL_DESTINATION "${grosr_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/grosrConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/grosrConfig.cmake" "${PROJECT_BINARY_DIR}/grosrConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/grosrDevice.cmake" DESTINATION "${grosr_package_dir}")
