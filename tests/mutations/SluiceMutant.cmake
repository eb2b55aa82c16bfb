# Builds a mutant: a copy of one file of the library with one text replaced. The copy is first in
# the include path, and its objects precede the library's.

add_library(sluice_mutant_main OBJECT mutant_main.cpp)
sluice_compile_options(sluice_mutant_main TEST)
target_link_libraries(sluice_mutant_main PRIVATE sluice::sim)

set(mutants_folder "${CMAKE_CURRENT_BINARY_DIR}/mutants")

# Writes the copy only if it changed, to avoid rebuilds.
function(sluice_write_copy path content)
  set(before "")
  if(EXISTS "${path}")
    file(READ "${path}" before)
  endif()
  if(NOT before STREQUAL content)
    file(WRITE "${path}" "${content}")
  endif()
endfunction()

function(sluice_mutant_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILTER;EXPECT" "COPIES;SCENARIOS;OBJECTS;RECOMPILED")
  set(sources)
  foreach(file IN LISTS arg_COPIES)
    if(file MATCHES "\\.cpp$")
      list(APPEND sources "${mutants_folder}/${name}/${file}")
    endif()
  endforeach()
  foreach(file IN LISTS arg_RECOMPILED)
    list(APPEND sources "${PROJECT_SOURCE_DIR}/${file}")
  endforeach()
  foreach(group IN LISTS arg_SCENARIOS)
    list(APPEND sources "${PROJECT_SOURCE_DIR}/tests/sim/${group}_scenarios.cpp")
  endforeach()
  foreach(group IN LISTS arg_OBJECTS)
    list(APPEND sources
      "$<FILTER:$<TARGET_OBJECTS:sluice_sim_scenarios>,INCLUDE,/${group}_scenarios>")
  endforeach()
  set(target sluice_mutant_${name})
  add_executable(${target} ${sources} $<TARGET_OBJECTS:sluice_mutant_main>)
  sluice_compile_options(${target} TEST SINGLE_SOURCES)
  target_include_directories(${target} BEFORE PRIVATE "${mutants_folder}/${name}")
  target_link_libraries(${target} PRIVATE sluice::sim)
  add_test(NAME mutants.${name}
    COMMAND ${target} --expect ${arg_EXPECT} --filter "${arg_FILTER}")
  set_tests_properties(mutants.${name} PROPERTIES LABELS certain)
endfunction()

# sluice_mutant(NAME FILE path REPLACE text BY text SCENARIOS group... EXPECT kind[,kind]
#               [FILTER text] [RECOMPILED source...] [OBJECTS group...])
#   SCENARIOS   tests/sim/GROUP_scenarios.cpp; recompiled for a mutated header
#   OBJECTS     likewise, with the suite's objects: for a header that only RECOMPILED sources use
#   EXPECT      the failure, see mutant_main.cpp
function(sluice_mutant name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILE;REPLACE;BY;FILTER;EXPECT"
    "SCENARIOS;OBJECTS;RECOMPILED")
  set(from "${PROJECT_SOURCE_DIR}/${arg_FILE}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${from}")
  file(READ "${from}" content)
  string(REPLACE "${arg_REPLACE}" "" without "${content}")
  string(LENGTH "${content}" length)
  string(LENGTH "${without}" length_without)
  string(LENGTH "${arg_REPLACE}" length_of_text)
  math(EXPR removed "${length} - ${length_without}")
  if(NOT removed EQUAL length_of_text)
    message(FATAL_ERROR "the text that the mutant ${name} replaces must occur exactly once in "
      "${arg_FILE}:\n${arg_REPLACE}")
  endif()
  string(REPLACE "${arg_REPLACE}" "${arg_BY}" mutated "${content}")
  sluice_write_copy("${mutants_folder}/${name}/${arg_FILE}" "${mutated}")
  set(scenarios ${arg_SCENARIOS})
  set(objects ${arg_OBJECTS})
  if(arg_FILE MATCHES "\\.cpp$")
    list(APPEND objects ${scenarios})
    set(scenarios)
  endif()
  sluice_mutant_executable(${name} COPIES "${arg_FILE}" SCENARIOS ${scenarios} OBJECTS ${objects}
    RECOMPILED ${arg_RECOMPILED} FILTER "${arg_FILTER}" EXPECT ${arg_EXPECT})
  set_property(GLOBAL APPEND PROPERTY SLUICE_MUTATED_FILES ${arg_FILE})
  set_property(GLOBAL APPEND PROPERTY SLUICE_MUTATED_SCENARIOS ${arg_SCENARIOS} ${arg_OBJECTS})
endfunction()

function(sluice_mutant_none)
  get_property(files GLOBAL PROPERTY SLUICE_MUTATED_FILES)
  get_property(scenarios GLOBAL PROPERTY SLUICE_MUTATED_SCENARIOS)
  list(REMOVE_DUPLICATES files)
  list(REMOVE_DUPLICATES scenarios)
  foreach(file IN LISTS files)
    file(READ "${PROJECT_SOURCE_DIR}/${file}" content)
    sluice_write_copy("${mutants_folder}/none/${file}" "${content}")
  endforeach()
  sluice_mutant_executable(none COPIES ${files} SCENARIOS ${scenarios} EXPECT nothing)
endfunction()
