# How the project compiles its own sources. Nothing here reaches a program that uses the library.

# Sanitizers change the ABI of what they instrument, so they are for the whole build or none.
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
    # Both see ghosts in g++ 12 once std::optional and std::string are inlined at -O2 (GCC bugs
    # 80635 and 105651). clang and the sanitizer builds look for the same mistakes.
    -Wno-maybe-uninitialized -Wno-restrict)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND sluice_warnings -Wcomma -Winconsistent-missing-override -Wloop-analysis
    # g++ also objects to a protected destructor when the class has a friend.
    -Wnon-virtual-dtor -Wnewline-eof -Wunreachable-code-break)
endif()
if(SLUICE_WARNINGS_AS_ERRORS)
  list(APPEND sluice_warnings -Werror)
endif()

# Every target whose sources are ours goes through here once.
function(sluice_compile_options target)
  target_compile_options(${target} PRIVATE ${sluice_warnings})
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_features(${target} PRIVATE cxx_std_20)
endfunction()

# ccache, when it is there and the user chose no launcher. Paths are hashed relative to the
# source tree, so that a second checkout of the same sources is served from the first one's
# cache; debug information is made relative to match.
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
