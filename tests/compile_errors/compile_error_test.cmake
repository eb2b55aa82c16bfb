# Compiles a source twice: without MISTAKE, which must succeed, and with MISTAKE defined, which must
# fail with an explanation.
#   cmake -D SOURCE=... -D SLUICE_SOURCE_DIR=... -D CMAKE_CXX_COMPILER=... -D WORDS=a|b -P this

function(compile out_code out_text)
  execute_process(
    COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 -fsyntax-only -I "${SLUICE_SOURCE_DIR}" ${ARGN}
      "${SOURCE}"
    RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(${out_code} ${code} PARENT_SCOPE)
  set(${out_text} "${text}" PARENT_SCOPE)
endfunction()

compile(code text)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${SOURCE} does not compile without the mistake:\n${text}")
endif()

compile(code text -DMISTAKE)
if(code EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles with the mistake in it")
endif()
string(REPLACE "|" ";" words "${WORDS}")
list(GET words 0 rule)
string(REGEX MATCH "error:[^\n]*" first_error "${text}")
string(FIND "${first_error}" "${rule}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${SOURCE}: the first error does not contain '${rule}':\n${text}")
endif()
foreach(word IN LISTS words)
  string(FIND "${text}" "${word}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${SOURCE}: the compiler's output does not contain '${word}':\n${text}")
  endif()
endforeach()
