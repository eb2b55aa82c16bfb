include_guard(GLOBAL)

# Declares one module of the library: its headers, its sources, its tests, and its dependencies.
#
#   sluice_module(NAME queue DEPENDS sync)
#
#   NAME     the calling folder of sluice/ (or of jobs/, with its path, as in jobs/store),
#            and a row of cmake/layers.txt
#   DEPENDS  the modules it uses; more than its row allows is an error
#   LIBRARIES, TEST_LIBRARIES
#            external targets that its sources, or only its tests, link to
#   TEST_DEPENDS
#            modules that only its tests use
#   NOT_INSTALLED
#            only the programs of this project link to it
#   HEADERS SOURCES TESTS
#            files of the folder; default: *.hpp, *.cpp and *_test.cpp of the folder and of
#            its detail/ (and for tests also *.cpp of its testing/)
#
# Creates the target sluice::<name> (a path's slashes become underscores), the test program
# sluice_<name>_test if there are tests, and the installed headers. A module of sluice/ is a part
# of the one library that is installed (SluiceLibrary.cmake). A module of jobs/ and a nested module,
# such as actor/sqlite, is an archive with its own export set, so programs that use only queues
# do not need its external libraries.
function(sluice_module)
  cmake_parse_arguments(PARSE_ARGV 0 arg "NOT_INSTALLED" "NAME"
    "HEADERS;SOURCES;TESTS;DEPENDS;LIBRARIES;TEST_LIBRARIES;TEST_DEPENDS")
  sluice_module_check("${arg_NAME}" "${arg_DEPENDS}" "${arg_TEST_DEPENDS}"
    "${arg_UNPARSED_ARGUMENTS}")
  sluice_module_files()
  set(umbrella "${PROJECT_SOURCE_DIR}/sluice/${arg_NAME}.hpp")
  if(EXISTS "${umbrella}")
    list(APPEND arg_HEADERS "${umbrella}")
  endif()

  string(REPLACE "/" "_" name "${arg_NAME}")
  set(target sluice_${name})
  list(TRANSFORM arg_DEPENDS REPLACE "/" "_" OUTPUT_VARIABLE links)
  list(TRANSFORM links PREPEND sluice::)
  list(APPEND links Threads::Threads ${arg_LIBRARIES})
  if(NOT arg_NAME MATCHES "/")
    sluice_library_part(${name} LINKS ${links} SOURCES ${arg_SOURCES})
    set(scope INTERFACE)
  elseif(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    sluice_compile_options(${target})
    if(NOT arg_NOT_INSTALLED)
      sluice_installed_code(${target})
    endif()
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(sluice::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_link_libraries(${target} ${scope} ${links})
  target_sources(${target} ${scope}
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${arg_HEADERS})
  if(NOT arg_NOT_INSTALLED)
    set(export sluice_targets)
    if(arg_NAME MATCHES "^jobs/")
      set(export sluice_jobs_targets)
    elseif(arg_NAME MATCHES "/")
      set(export sluice_inner_targets)
      set_property(GLOBAL PROPERTY SLUICE_HAS_INNER_MODULES ON)
    endif()
    install(TARGETS ${target} EXPORT ${export}
      ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
      FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  endif()

  set_property(GLOBAL APPEND PROPERTY SLUICE_MODULES ${arg_NAME})
  set_property(GLOBAL APPEND PROPERTY SLUICE_HEADERS ${arg_HEADERS})
  if(SLUICE_BUILD_TESTS AND arg_TESTS)
    sluice_test(NAME ${target}_test SOURCES ${arg_TESTS} DEPENDS ${arg_NAME} ${arg_TEST_DEPENDS}
      LIBRARIES ${arg_TEST_LIBRARIES})
  endif()
endfunction()

# Declares one test program.
#
#   sluice_test(NAME sluice_stress_test SOURCES ... DEPENDS queue channel LIBRARIES ...
#     FIXTURES ...)
#
# Every TEST in it is a separate ctest, found when ctest starts, so that each has its own time
# limit (that of the test preset) and a crash does not affect other tests. DEPENDS names modules,
# FIXTURES names required ctest fixtures. ALONE: for tests that measure, or that would
# slow down others. CERTAIN adds the label `certain`; scripts/run-tests never reports such a test as
# flaky.
function(sluice_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "ALONE;CERTAIN" "NAME"
    "SOURCES;DEPENDS;LIBRARIES;FIXTURES")
  if(NOT arg_NAME OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR
      "sluice_test(NAME name SOURCES file... [DEPENDS module...] [ALONE] [CERTAIN])")
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  sluice_compile_options(${arg_NAME} TEST)
  target_include_directories(${arg_NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${arg_NAME} PRIVATE GTest::gtest_main ${arg_LIBRARIES})
  foreach(module IN LISTS arg_DEPENDS)
    string(REPLACE "/" "_" used "${module}")
    target_link_libraries(${arg_NAME} PRIVATE sluice::${used})
  endforeach()
  set(more)
  if(arg_ALONE)
    set(more RUN_SERIAL ON)
  endif()
  if(arg_CERTAIN)
    list(APPEND more LABELS certain)
  endif()
  if(arg_FIXTURES)
    list(APPEND more FIXTURES_REQUIRED "${arg_FIXTURES}")
  endif()
  gtest_discover_tests(${arg_NAME}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 300
    PROPERTIES ${more})
endfunction()

function(sluice_module_check name depends test_depends unparsed)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REGEX REPLACE "^sluice/" "" folder "${folder}")
  if(unparsed OR NOT name STREQUAL folder)
    message(FATAL_ERROR "sluice_module(NAME ${folder} ...) was expected, "
      "found NAME '${name}' and unknown arguments '${unparsed}'")
  endif()
  if(NOT name IN_LIST SLUICE_LAYERS)
    message(FATAL_ERROR "${folder} has no row in cmake/layers.txt")
  endif()
  sluice_module_folder(${name} where)
  foreach(module IN LISTS depends)
    if(NOT module IN_LIST SLUICE_MAY_USE_${name})
      message(FATAL_ERROR "${where} may not depend on '${module}': "
        "cmake/layers.txt allows '${SLUICE_MAY_USE_${name}}'")
    endif()
  endforeach()
  foreach(module IN LISTS test_depends)
    if(NOT module IN_LIST SLUICE_MAY_USE_${name} AND
        NOT module IN_LIST SLUICE_TESTS_MAY_USE_${name})
      message(FATAL_ERROR "the tests of ${where} may not depend on '${module}': write "
        "'test:${module}' into its row of cmake/layers.txt")
    endif()
  endforeach()
endfunction()

# Sets the file lists that the caller omitted, and makes all of them absolute.
macro(sluice_module_files)
  if(NOT arg_HEADERS)
    file(GLOB arg_HEADERS CONFIGURE_DEPENDS *.hpp detail/*.hpp)
  endif()
  if(NOT arg_SOURCES)
    file(GLOB arg_SOURCES CONFIGURE_DEPENDS *.cpp detail/*.cpp)
    list(FILTER arg_SOURCES EXCLUDE REGEX "_(test|bench)\\.cpp$")
  endif()
  if(NOT arg_TESTS)
    file(GLOB arg_TESTS CONFIGURE_DEPENDS *_test.cpp detail/*_test.cpp testing/*.cpp)
  endif()
  foreach(files IN ITEMS arg_HEADERS arg_SOURCES arg_TESTS)
    list(TRANSFORM ${files} PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" REGEX "^[^/]")
  endforeach()
endmacro()
