# Compile options of the project's own sources. Programs that use the library do not inherit them.

# Sanitizers change the ABI of instrumented code, so they apply to the whole build or not at all.
if(SLUICE_SANITIZE)
  add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
endif()

set(sluice_warnings
  -Wall -Wextra -Wpedantic
  -Wcast-align -Wcast-qual -Wconversion -Wdouble-promotion -Wextra-semi -Wformat=2
  -Wimplicit-fallthrough -Wold-style-cast -Woverloaded-virtual -Wshadow -Wsign-conversion
  -Wundef -Wunused)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND sluice_warnings -Wduplicated-cond -Wlogical-op -Wsuggest-override
    # Both give false positives in g++ 12 once std::optional and std::string are inlined at -O2 (GCC
    # bugs 80635 and 105651). clang and the sanitizer builds check for the same mistakes.
    -Wno-maybe-uninitialized -Wno-restrict)
  if(SLUICE_UNITY)
    # The warning concerns headers. In a unity build g++ takes every included source for a header.
    # The preset `debug` compiles every source alone.
    list(APPEND sluice_warnings -Wno-subobject-linkage)
  endif()
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND sluice_warnings -Wcomma -Winconsistent-missing-override -Wloop-analysis
    # g++ also objects to a protected destructor when the class has a friend.
    -Wnon-virtual-dtor -Wnewline-eof -Wunreachable-code-break)
endif()
if(SLUICE_WARNINGS_AS_ERRORS)
  list(APPEND sluice_warnings -Werror)
endif()

# Called once for every target with sources of this project.
#
# With SLUICE_UNITY, up to eight sources of a target are compiled as one: headers are parsed and
# templates instantiated once for all of them. So two sources of a target must not define the same
# name, not even in an anonymous namespace; a test file puts its names into a namespace named after
# the file. SINGLE_SOURCES: this target's sources are compiled one by one.
# TEST: the target also gets SLUICE_TEST_OPTIONS.
function(sluice_compile_options target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TEST;SINGLE_SOURCES" "" "")
  set(unity ${SLUICE_UNITY})
  if(arg_SINGLE_SOURCES)
    set(unity OFF)
  endif()
  target_compile_options(${target} PRIVATE ${sluice_warnings})
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF
    UNITY_BUILD ${unity}
    UNITY_BUILD_BATCH_SIZE 8)
  target_compile_features(${target} PRIVATE cxx_std_20)
  if(arg_TEST)
    target_compile_options(${target} PRIVATE ${SLUICE_TEST_OPTIONS})
  endif()
endfunction()

# Uses ccache if it is installed and the user chose no launcher. Paths are hashed relative to the
# source tree, so that a second checkout of the same sources uses the first one's
# cache; debug information is relative, too.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(SLUICE_CCACHE ccache)
  mark_as_advanced(SLUICE_CCACHE)
  if(SLUICE_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER env
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_NOHASHDIR=1
      ${SLUICE_CCACHE})
    add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
  endif()
endif()
