# Proves, by compiling it, that every header of every module can be the first and only include of
# a file (it names what it needs), can be included twice, and can be included by many files of
# one program (it defines nothing that is not inline).
function(sluice_headers_alone)
  get_property(headers GLOBAL PROPERTY SLUICE_HEADERS)
  set(folder "${PROJECT_BINARY_DIR}/headers_alone")
  set(sources)
  foreach(header IN LISTS headers)
    file(RELATIVE_PATH path "${PROJECT_SOURCE_DIR}" "${header}")
    string(REPLACE "/" "_" name "${path}")
    set(content "#include \"${path}\"\n#include \"${path}\" // again: the guard must hold\n")
    file(CONFIGURE OUTPUT "${folder}/${name}.cpp" CONTENT "${content}" @ONLY)
    list(APPEND sources "${folder}/${name}.cpp")
  endforeach()
  if(NOT sources)
    return()
  endif()
  file(CONFIGURE OUTPUT "${folder}/main.cpp" CONTENT "int main() {}\n" @ONLY)

  get_property(modules GLOBAL PROPERTY SLUICE_MODULES)
  list(TRANSFORM modules REPLACE "/" "_")
  list(TRANSFORM modules PREPEND sluice::)
  add_library(sluice_headers_alone OBJECT ${sources})
  sluice_compile_options(sluice_headers_alone)
  target_link_libraries(sluice_headers_alone PRIVATE ${modules})
  # Only the front end is wanted here.
  target_compile_options(sluice_headers_alone PRIVATE -O0 -g0)

  add_executable(sluice_headers_together "${folder}/main.cpp")
  sluice_compile_options(sluice_headers_together)
  target_link_libraries(sluice_headers_together PRIVATE sluice_headers_alone ${modules})
endfunction()
