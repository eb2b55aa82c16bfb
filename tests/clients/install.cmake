# Installs the packages of package-lock.json into INTO, once: cmake -DNPM=... -DFROM=... -DINTO=...
# -P install.cmake. If it fails, the tests that need the packages fail.
file(SHA256 "${FROM}/package-lock.json" wanted)
set(stamp "${INTO}/installed")
if(EXISTS "${stamp}")
  file(READ "${stamp}" installed)
  if(installed STREQUAL wanted)
    return()
  endif()
endif()
if(NOT NPM OR NOT NODE)
  message(FATAL_ERROR "node and npm were not found: run 'scripts/setup clients' and configure "
    "again, or do without these tests with -DSLUICE_NPM_CLIENTS=OFF")
endif()
file(REMOVE_RECURSE "${INTO}")
file(MAKE_DIRECTORY "${INTO}")
file(COPY "${FROM}/package.json" "${FROM}/package-lock.json" DESTINATION "${INTO}")
# Runs no scripts of packages. Retries, since the registry may fail temporarily.
foreach(attempt RANGE 1 3)
  execute_process(
    COMMAND "${NPM}" ci --ignore-scripts --no-audit --no-fund
    TIMEOUT 180
    WORKING_DIRECTORY "${INTO}" RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT failed)
    break()
  endif()
endforeach()
if(failed)
  message(FATAL_ERROR "npm ci failed (${failed}); -DSLUICE_NPM_CLIENTS=OFF does without these "
    "tests:\n${output}")
endif()
file(WRITE "${stamp}" "${wanted}")
