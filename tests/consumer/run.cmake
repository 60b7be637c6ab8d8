# Installs BUILD_DIR into a fresh folder, builds this project against it alone, and runs it.
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
if(GRAPH)
  step("searching" "${work}/build/search")
endif()
