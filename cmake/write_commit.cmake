# Writes OUTPUT = the commit of SOURCE_DIR as a C++ string literal; touches it only when it changed.
# GROSR_COMMIT in the environment wins: for builds of a copy that has no .git.
set(commit "$ENV{GROSR_COMMIT}")
if(NOT commit)
  execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=*
    WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_VARIABLE commit ERROR_QUIET
    OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT commit MATCHES "^[0-9A-Za-z._-]+$")
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "\"${commit}\"\n" @ONLY)
