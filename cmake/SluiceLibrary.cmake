# The installed library: libsluice.a or, with BUILD_SHARED_LIBS, libsluice.so.
#
# Each module of sluice/ is compiled once, as sluice_<name>_part. The library sluice_library
# consists of the objects of all parts. A program of this build, or of a project that includes this
# one as a folder, links to the archives of the parts that it uses, so it builds no other part.
# Installed, sluice::<name> is an interface target that links to the library. With BUILD_SHARED_LIBS
# it links to the library in this build too: parts in several binaries would each have their own
# state.

# sluice_library_part(name LINKS target... SOURCES file...)
#
# Adds the interface target sluice_<name> and, if there are sources, the part that it links to.
function(sluice_library_part name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINKS;SOURCES")
  add_library(sluice_${name} INTERFACE)
  target_link_libraries(sluice_${name} INTERFACE $<INSTALL_INTERFACE:sluice_library>)
  if(BUILD_SHARED_LIBS)
    target_link_libraries(sluice_${name} INTERFACE $<BUILD_INTERFACE:sluice_library>)
  endif()
  if(NOT arg_SOURCES)
    return()
  endif()
  set(part sluice_${name}_part)
  if(BUILD_SHARED_LIBS)
    add_library(${part} OBJECT ${arg_SOURCES})
    target_link_libraries(${part} PRIVATE Threads::Threads)
  else()
    add_library(${part} STATIC ${arg_SOURCES})
    target_link_libraries(${part} PUBLIC ${arg_LINKS})
    target_link_libraries(sluice_${name} INTERFACE $<BUILD_INTERFACE:${part}>)
  endif()
  target_include_directories(${part} PRIVATE "${PROJECT_SOURCE_DIR}")
  sluice_compile_options(${part})
  sluice_installed_code(${part})
  set_property(GLOBAL APPEND PROPERTY SLUICE_PARTS ${part})
  set_property(GLOBAL APPEND PROPERTY SLUICE_PART_SOURCES ${arg_SOURCES})
endfunction()

# Options of installed code, which programs and shared objects link to. Without the two options
# -fPIC has a price: a function that can be replaced at run time is not inlined, and each access to
# a thread_local calls __tls_get_addr. With them the linker turns each access in a program into an
# offset from the thread pointer, as in non-PIC code. The price is 1.6 kB of the 1.7 kB that glibc
# reserves for the initial-exec variables of all objects loaded by dlopen; the tests
# Install.plugin_* load such an object.
function(sluice_installed_code target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -fno-semantic-interposition -ftls-model=initial-exec)
endfunction()

# Adds sluice_library, after all modules.
function(sluice_add_library)
  get_property(parts GLOBAL PROPERTY SLUICE_PARTS)
  list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  set(scope PUBLIC)
  if(NOT objects)
    add_library(sluice_library INTERFACE) # all modules are header-only
    set(scope INTERFACE)
  elseif(BUILD_SHARED_LIBS)
    add_library(sluice_library SHARED ${objects})
    sluice_shared_library()
  else()
    add_library(sluice_library STATIC ${objects})
  endif()
  add_library(sluice::sluice ALIAS sluice_library)
  set_target_properties(sluice_library PROPERTIES EXPORT_NAME sluice OUTPUT_NAME sluice)
  target_compile_features(sluice_library ${scope} cxx_std_20)
  target_link_libraries(sluice_library ${scope} Threads::Threads)
  target_include_directories(sluice_library ${scope}
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  if(EXISTS "${PROJECT_SOURCE_DIR}/sluice/sluice.hpp")
    target_sources(sluice_library ${scope} FILE_SET HEADERS
      BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES "${PROJECT_SOURCE_DIR}/sluice/sluice.hpp")
    set(headers FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  endif()
  install(TARGETS sluice_library EXPORT sluice_targets
    ${headers}
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endfunction()

# While the major version is 0, a minor version may change the ABI, so the soname names both.
# -Bsymbolic-functions: calls inside the library are direct, as -fno-semantic-interposition assumes.
function(sluice_shared_library)
  set(SLUICE_ABI ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set(map "${PROJECT_BINARY_DIR}/sluice.map")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/sluice.map.in" "${map}" @ONLY)
  set_target_properties(sluice_library PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${SLUICE_ABI} LINK_DEPENDS "${map}")
  target_link_options(sluice_library PRIVATE
    "LINKER:--version-script=${map}" LINKER:-Bsymbolic-functions)
endfunction()
