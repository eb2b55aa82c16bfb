# Builds the project in tests/install/consumer against the library and runs its programs.
#   cmake -D PARTS=queue,sim -D WAY=find_package|add_subdirectory
#         -D SLUICE_SOURCE_DIR=... -D SLUICE_BINARY_DIR=...
#         -D WORK_DIR=... -D CMAKE_CXX_COMPILER=... -D CMAKE_CXX_COMPILER_LAUNCHER=... -P this

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "'${ARGN}' failed (${code}):\n${out}")
  endif()
endfunction()

string(REPLACE "," ";" parts "${PARTS}")
file(REMOVE_RECURSE "${WORK_DIR}")
file(COPY "${CMAKE_CURRENT_LIST_DIR}/consumer" DESTINATION "${WORK_DIR}")
if(WAY STREQUAL "find_package")
  run("${CMAKE_COMMAND}" --install "${SLUICE_BINARY_DIR}" --prefix "${WORK_DIR}/prefix")
  set(where -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix)
else()
  set(where -D SLUICE_FOLDER=${SLUICE_SOURCE_DIR})
endif()
run("${CMAKE_COMMAND}" -G Ninja -S "${WORK_DIR}/consumer" -B "${WORK_DIR}/build" ${where}
  -D PARTS=${PARTS}
  -D CMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
  -D CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER})
foreach(part IN LISTS parts)
  run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build" --target consumer_${part})
  run("${CMAKE_COMMAND}" -E chdir "${WORK_DIR}" "${WORK_DIR}/build/consumer_${part}")
endforeach()

# Installed, it must be the installed headers that were compiled; as a folder, the library must
# not have added its own tests.
file(READ "${WORK_DIR}/build/build.ninja" ninja)
if(WAY STREQUAL "find_package" AND NOT ninja MATCHES "${WORK_DIR}/prefix/include")
  message(FATAL_ERROR "the consumer was not built from ${WORK_DIR}/prefix")
elseif(WAY STREQUAL "add_subdirectory" AND ninja MATCHES "sluice_queue_test|sluice_headers_alone")
  message(FATAL_ERROR "a project that uses sluice builds its tests too")
endif()
