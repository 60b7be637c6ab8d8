# Installs BUILD_DIR into a fresh folder, builds this project against it alone, and runs it. Then the same
# for a project that has the source in it: add_subdirectory() is configured, FetchContent built, in the least
# time: what others compile it with is theirs to say. Where tests take slices, it is built with CUDA for even
# numbers, and without for odd ones.
set(work "${BUILD_DIR}/consumer")
file(REMOVE_RECURSE "${work}")

function(step what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "consumer: ${what} failed (${result}); see above.")
  endif()
endfunction()

step("installing ${BUILD_DIR}"
  ${CMAKE_COMMAND} --install "${BUILD_DIR}" --component library --config "${CONFIG}" --prefix "${work}/prefix")
set(cuda_arguments "")
if(CUDA_COMPILER)
  set(cuda_arguments "-DCMAKE_CUDA_COMPILER=${CUDA_COMPILER}" "-DCMAKE_CUDA_ARCHITECTURES=${CUDA_ARCHITECTURES}")
endif()
step("configuring" ${CMAKE_COMMAND} -G "${GENERATOR}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${work}/build"
  "-DCMAKE_PREFIX_PATH=${work}/prefix" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
  "-DCMAKE_BUILD_TYPE=${CONFIG}" ${cuda_arguments})
step("building" ${CMAKE_COMMAND} --build "${work}/build")
step("running" "${work}/build/consumer")
if(EMBEDDED_ARCHITECTURES)
  list(APPEND cuda_arguments "-DCMAKE_CUDA_ARCHITECTURES=${EMBEDDED_ARCHITECTURES}")
endif()
foreach(how subdirectory fetch)
  step("configuring by ${how}" ${CMAKE_COMMAND} -G "${GENERATOR}" -S "${CMAKE_CURRENT_LIST_DIR}/embedded" -B "${work}/${how}"
    "-DHOW=${how}" "-DGROSR_SOURCE=${SOURCE_DIR}" "-DGROSR_CUDA=${CUDA}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DGROSR_UNITY_LIBRARIES=ON -DCMAKE_EXPORT_COMPILE_COMMANDS=ON ${cuda_arguments})
  file(STRINGS "${work}/${how}/compile_commands.json" by_nvcc REGEX "nvcc.*consumer/tasks\\.cpp")
  if(CUDA STREQUAL "ON" AND NOT by_nvcc)
    message(FATAL_ERROR "consumer: by ${how}, device code is not compiled by nvcc although the library has CUDA.")
  endif()
endforeach()
set(turn "")
if(DEFINED ENV{GROSR_TEST_SLICE})
  math(EXPR turn "$ENV{GROSR_TEST_SLICE} % 2")
endif()
if(turn STREQUAL "" OR (CUDA AND turn EQUAL 0) OR (NOT CUDA AND turn EQUAL 1))
  step("building by fetch" ${CMAKE_COMMAND} --build "${work}/fetch")
  step("running by fetch" "${work}/fetch/embedded")
endif()
if(GRAPH)
  step("searching" "${work}/build/search")
endif()
