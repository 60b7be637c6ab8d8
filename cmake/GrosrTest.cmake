# grosr_add_test(<name> FILES <file>... [DEVICE] [LABELS <label>...] [TIMEOUT <seconds>] [PARTS <n>])
#   A GoogleTest program and one ctest entry of the same name. DEVICE: the files hold device code.
#   PARTS: under ThreadSanitizer, which slows a process by every fiber that it ever made, it runs as n
#   entries <name>.<k> instead. An odd number: tests of two devices alternate.
# grosr_add_ptx(<name> <file>...): device tests that are only compiled, and only for the device.
# grosr_add_script_test(<name> COMMAND <command>... [LABELS <label>...] [TIMEOUT <seconds>])
#   Any command that exits with 0 when it passes.
#
# TIMEOUT is for a plain build (600 s when not given); sanitizers get three times as long.
# GROSR_TEST_SCALE in the environment shortens tests that read it (tests/support/scale.hpp).
include_guard(GLOBAL)

function(grosr_test_properties name labels timeout)
  if(NOT timeout)
    set(timeout 600)
  endif()
  if(GROSR_SANITIZE)
    math(EXPR timeout "${timeout} * 3")
  endif()
  set(environment
    "ASAN_OPTIONS=abort_on_error=0:detect_leaks=1:strict_string_checks=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")
  if(TARGET grosr_cli)
    list(APPEND environment "GROSR_CLI=$<TARGET_FILE:grosr_cli>" "GROSR_APPS=${PROJECT_BINARY_DIR}/apps")
  endif()
  set_tests_properties(${name} PROPERTIES
    LABELS "${labels}" TIMEOUT ${timeout} ENVIRONMENT "${environment}")
endfunction()

function(grosr_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "DEVICE" "TIMEOUT;PARTS" "FILES;LABELS")
  if(NOT arg_FILES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "grosr_add_test(${name}): needs FILES; did not understand '${arg_UNPARSED_ARGUMENTS}'.")
  endif()
  add_executable(${name})
  if(arg_DEVICE)
    grosr_own_device_sources(${name} ${arg_FILES})
  else()
    target_sources(${name} PRIVATE ${arg_FILES})
  endif()
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${name} PRIVATE grosr::grosr GTest::gtest_main)
  grosr_own_target(${name})
  grosr_precompile(${name} test)
  if(NOT TARGET test_programs)
    add_custom_target(test_programs)
  endif()
  add_dependencies(test_programs ${name})
  set(parts 1)
  if(arg_PARTS AND GROSR_SANITIZE MATCHES "thread")
    set(parts ${arg_PARTS})
  endif()
  math(EXPR last "${parts} - 1")
  foreach(part RANGE ${last})
    set(entry ${name})
    if(parts GREATER 1)
      set(entry ${name}.${part})
    endif()
    add_test(NAME ${entry} COMMAND ${GROSR_TEST_LAUNCHER} $<TARGET_FILE:${name}> --gtest_brief=1)
    grosr_test_properties(${entry} "${arg_LABELS}" "${arg_TIMEOUT}")
    if(parts GREATER 1)
      set_property(TEST ${entry} APPEND PROPERTY ENVIRONMENT
        GTEST_TOTAL_SHARDS=${parts} GTEST_SHARD_INDEX=${part})
    endif()
    if(arg_DEVICE AND GROSR_CUDA_ENABLED)
      set_tests_properties(${entry} PROPERTIES RESOURCE_LOCK gpu)
    endif()
  endforeach()
endfunction()

function(grosr_add_ptx name)
  add_library(${name} OBJECT)
  grosr_device_sources(${name} ${ARGN})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${name} PRIVATE grosr::grosr GTest::gtest)
  set_target_properties(${name} PROPERTIES CUDA_PTX_COMPILATION ON)
  grosr_own_target(${name})
  add_dependencies(device_code ${name})
endfunction()

function(grosr_add_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "COMMAND;LABELS")
  if(NOT arg_COMMAND OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "grosr_add_script_test(${name}): needs COMMAND; did not understand '${arg_UNPARSED_ARGUMENTS}'.")
  endif()
  add_test(NAME ${name} COMMAND ${GROSR_TEST_LAUNCHER} ${arg_COMMAND})
  grosr_test_properties(${name} "${arg_LABELS}" "${arg_TIMEOUT}")
endfunction()
