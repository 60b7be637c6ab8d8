target_link_libraries(app_bale PRIVATE grosr::graph)
