target_link_libraries(app_distributed-graph PRIVATE grosr::graph)
