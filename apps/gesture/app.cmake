# OpenMP is there to be compared with; dlopen() finds NVIDIA's management library.
grosr_use_openmp(app_gesture "${folder}/by_host.cpp")
target_link_libraries(app_gesture PRIVATE ${CMAKE_DL_LIBS})
