# OpenMP is there to be compared with; dlopen() finds NVIDIA's management library.
grosr_use_openmp(app_gesture "${folder}/by_host.cpp")
if(NOT OpenMP_CXX_FOUND)
  set_source_files_properties("${folder}/by_host.cpp" TARGET_DIRECTORY app_gesture
    PROPERTIES COMPILE_OPTIONS -Wno-unknown-pragmas)
endif()
target_link_libraries(app_gesture PRIVATE ${CMAKE_DL_LIBS})
