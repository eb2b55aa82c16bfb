# Builds a project of two modules, low and high, and in some cases a third below jobs/, with this
# repository's build files and one mistake, and passes when the build refuses it for that reason.
#   cmake -D CASE=... -D SOURCE_DIR=... -D WORK_DIR=... -D CMAKE_CXX_COMPILER=... -P this

file(REMOVE_RECURSE "${WORK_DIR}")
file(COPY "${SOURCE_DIR}/cmake" "${SOURCE_DIR}/CMakeLists.txt" "${SOURCE_DIR}/LICENSE"
  DESTINATION "${WORK_DIR}")

set(layers "low ->\nhigh -> low\n")
set(low_module "sluice_module(NAME low)\n")
set(high_module "sluice_module(NAME high DEPENDS low)\n")
set(low_header "#pragma once\nnamespace sluice { struct low {}; }\n")
set(high_header
  "#pragma once\n#include \"sluice/low/low.hpp\"\nnamespace sluice { struct high : low {}; }\n")
set(expected "")
set(build_jobs OFF)

if(CASE STREQUAL "refuses_a_folder_without_a_row")
  file(WRITE "${WORK_DIR}/sluice/stray/stray.hpp" "#pragma once\n")
  set(expected "sluice/stray is not a module")
elseif(CASE STREQUAL "refuses_a_folder_of_jobs_without_a_row")
  file(WRITE "${WORK_DIR}/jobs/stray/stray.hpp" "#pragma once\n")
  set(expected "jobs/stray is not a module")
elseif(CASE STREQUAL "refuses_a_folder_inside_a_module_without_a_row")
  file(WRITE "${WORK_DIR}/sluice/low/detail/inner.hpp" "#pragma once\n")
  file(WRITE "${WORK_DIR}/sluice/low/stray/stray.hpp" "#pragma once\n")
  set(expected "sluice/low/stray is not a module")
elseif(CASE MATCHES "jobs$|of_tests")
  set(build_jobs ON)
  string(APPEND layers "jobs/top -> high\n")
  set(top_module "sluice_module(NAME jobs/top DEPENDS high)\n")
  if(CASE STREQUAL "refuses_a_library_that_depends_on_jobs")
    set(high_module "sluice_module(NAME high DEPENDS low jobs/top)\n")
    set(expected "sluice/high may not depend on 'jobs/top'")
  elseif(CASE STREQUAL "refuses_a_dependency_of_tests_without_a_right")
    string(APPEND layers "jobs/beside -> low\n")
    file(WRITE "${WORK_DIR}/jobs/beside/CMakeLists.txt"
      "sluice_module(NAME jobs/beside DEPENDS low TEST_DEPENDS jobs/top)\n")
    set(expected "the tests of jobs/beside may not depend on 'jobs/top'")
  elseif(NOT CASE STREQUAL "accepts_a_sound_module_of_jobs")
    message(FATAL_ERROR "no case '${CASE}'")
  endif()
  file(WRITE "${WORK_DIR}/jobs/top/CMakeLists.txt" "${top_module}")
  file(WRITE "${WORK_DIR}/jobs/top/top.hpp" "#pragma once\n"
    "#include \"sluice/high/high.hpp\"\n" "namespace sluice { struct top : high {}; }\n")
elseif(CASE STREQUAL "refuses_a_row_without_a_folder")
  string(APPEND layers "higher -> high\n")
  set(expected "sluice/higher/CMakeLists.txt")
elseif(CASE STREQUAL "refuses_a_dependency_that_points_up")
  set(low_module "sluice_module(NAME low DEPENDS high)\n")
  set(expected "sluice/low may not depend on 'high'")
elseif(CASE STREQUAL "refuses_a_header_that_does_not_compile_alone")
  set(high_header "#pragma once\nnamespace sluice { struct high : low {}; }\n")
  set(expected "high.hpp:2")
elseif(CASE STREQUAL "refuses_a_header_without_a_guard")
  set(low_header "namespace sluice { struct low {}; }\n")
  set(expected "redefinition of")
elseif(CASE STREQUAL "refuses_a_header_that_defines_twice")
  string(APPEND low_header "namespace sluice { int not_inline() { return 1; } }\n")
  set(expected "multiple definition of")
elseif(NOT CASE STREQUAL "accepts_a_sound_project")
  message(FATAL_ERROR "no case '${CASE}'")
endif()

file(WRITE "${WORK_DIR}/cmake/layers.txt" "${layers}")
file(WRITE "${WORK_DIR}/sluice/low/CMakeLists.txt" "${low_module}")
file(WRITE "${WORK_DIR}/sluice/low/low.hpp" "${low_header}")
file(WRITE "${WORK_DIR}/sluice/high/CMakeLists.txt" "${high_module}")
file(WRITE "${WORK_DIR}/sluice/high/high.hpp" "${high_header}")

execute_process(
  COMMAND "${CMAKE_COMMAND}" -G Ninja -S "${WORK_DIR}" -B "${WORK_DIR}/build"
    -D CMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
    -D SLUICE_BUILD_JOBS=${build_jobs}
    -D SLUICE_CHECK_HEADERS=ON
    -D SLUICE_BUILD_TESTS=OFF -D SLUICE_BUILD_EXAMPLES=OFF -D SLUICE_BUILD_BENCHMARKS=OFF
  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(code EQUAL 0)
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK_DIR}/build"
    RESULT_VARIABLE code OUTPUT_VARIABLE build_output ERROR_VARIABLE build_output)
  string(APPEND output "${build_output}")
endif()

# CMake breaks the lines of its messages.
string(REGEX REPLACE "[ \n]+" " " flat "${output}")
string(FIND "${flat}" "${expected}" found)
if(expected STREQUAL "" AND NOT code EQUAL 0)
  message(FATAL_ERROR "a sound project was refused:\n${output}")
elseif(NOT expected STREQUAL "" AND (code EQUAL 0 OR found EQUAL -1))
  message(FATAL_ERROR "expected a refusal that says '${expected}':\n${output}")
endif()
file(REMOVE_RECURSE "${WORK_DIR}")
