# A library of `grosr`: files are inflated by zlib, linked statically where it can be; reference
# algorithms use OpenMP, which ThreadSanitizer does not know as GCC's has it.
list(PREPEND CMAKE_FIND_LIBRARY_SUFFIXES ${CMAKE_STATIC_LIBRARY_SUFFIX})
find_package(ZLIB REQUIRED)
list(POP_FRONT CMAKE_FIND_LIBRARY_SUFFIXES)
target_link_libraries(app_graph PRIVATE ZLIB::ZLIB)
if(NOT GROSR_SANITIZE MATCHES "thread")
  find_package(OpenMP QUIET COMPONENTS CXX)
endif()
if(OpenMP_CXX_FOUND)
  target_compile_definitions(app_graph PRIVATE GROSR_HAS_OPENMP=1)
  file(GLOB openmp_sources "${folder}/*openmp*.cpp" "${folder}/check.cpp" "${folder}/reference.cpp")
  set_source_files_properties(${openmp_sources} PROPERTIES
    COMPILE_OPTIONS "${OpenMP_CXX_FLAGS}" SKIP_PRECOMPILE_HEADERS ON)
  target_link_libraries(app_graph PRIVATE ${OpenMP_CXX_LIBRARIES})
endif()

# A graph of kernels whose condition a kernel sets, which is linked on the device.
if(GROSR_CUDA_ENABLED)
  add_library(app_graph_loop STATIC "${folder}/bfs_loop.cu")
  set_target_properties(app_graph_loop PROPERTIES
    CUDA_SEPARABLE_COMPILATION ON CUDA_RESOLVE_DEVICE_SYMBOLS ON)
  target_include_directories(app_graph_loop PRIVATE "${folder}")
  target_link_libraries(app_graph_loop PUBLIC grosr::grosr)
  grosr_own_target(app_graph_loop)
  target_link_libraries(app_graph PUBLIC app_graph_loop)
endif()
