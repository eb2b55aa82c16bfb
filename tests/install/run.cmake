# Runs a command of a test. Stops the test if the command fails. Sets `output` to its output.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "'${ARGN}' failed (${code}):\n${out}${err}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()
