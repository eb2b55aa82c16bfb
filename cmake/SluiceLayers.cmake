# Reads cmake/layers.txt into variables of the calling scope:
#   SLUICE_LAYERS           every module, bottom layer first
#   SLUICE_MAY_USE_<module> everything that module may depend on, inherited rows included
#   SLUICE_TESTS_MAY_USE_<module> what its tests may depend on in addition
function(sluice_read_layers file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(READ "${file}" text)
  string(REGEX REPLACE "#[^\n]*" "" text "${text}")
  string(REGEX REPLACE "\n +" " " text "${text}") # joins continuation lines
  string(REPLACE "\n" ";" rows "${text}")
  set(modules)
  foreach(row IN LISTS rows)
    if(row MATCHES "^[ \t]*$")
      continue()
    endif()
    if(NOT row MATCHES "^([a-z_/]+) *->(.*)$")
      message(FATAL_ERROR "${file}: expected 'module -> module, module', found '${row}'")
    endif()
    set(module "${CMAKE_MATCH_1}")
    string(REGEX MATCHALL "[^ ,]+" uses "${CMAKE_MATCH_2}")
    if(module IN_LIST modules)
      message(FATAL_ERROR "${file}: '${module}' has two rows")
    endif()
    set(may_use)
    set(tests_may_use)
    foreach(use IN LISTS uses)
      if(use MATCHES "^<.*>$")
        continue() # an external library: checked by the include walk
      endif()
      set(list may_use)
      if(use MATCHES "^test:(.+)$")
        set(use "${CMAKE_MATCH_1}")
        set(list tests_may_use)
      endif()
      if(NOT use IN_LIST modules)
        message(FATAL_ERROR
          "${file}: '${module}' names '${use}', which has no row above it")
      endif()
      list(APPEND ${list} ${use} ${SLUICE_MAY_USE_${use}})
    endforeach()
    list(REMOVE_DUPLICATES may_use)
    list(APPEND modules ${module})
    set(SLUICE_MAY_USE_${module} "${may_use}")
    set(SLUICE_MAY_USE_${module} "${may_use}" PARENT_SCOPE)
    set(SLUICE_TESTS_MAY_USE_${module} "${tests_may_use}" PARENT_SCOPE)
  endforeach()
  set(SLUICE_LAYERS "${modules}" PARENT_SCOPE)
endfunction()

# Sets the folder of a module: a row that begins with jobs/ is a folder of the root, any other is a
# folder of sluice/.
function(sluice_module_folder module out)
  if(module MATCHES "^jobs/")
    set(${out} "${module}" PARENT_SCOPE)
  else()
    set(${out} "sluice/${module}" PARENT_SCOPE)
  endif()
endfunction()

# Checks that every folder of sluice/ and of jobs/ is a row of the table, and every row a folder. A
# module may contain detail/, testing/ and nested modules.
function(sluice_check_folders source_dir)
  file(GLOB entries CONFIGURE_DEPENDS RELATIVE "${source_dir}"
    "${source_dir}/sluice/*" "${source_dir}/jobs/*"
    "${source_dir}/sluice/*/*" "${source_dir}/jobs/*/*")
  foreach(entry IN LISTS entries)
    string(REGEX REPLACE "^sluice/" "" module "${entry}")
    if(entry MATCHES "^[^/]+/[^/]+/(detail|testing)$")
      continue()
    endif()
    if(IS_DIRECTORY "${source_dir}/${entry}" AND NOT module IN_LIST SLUICE_LAYERS)
      message(FATAL_ERROR
        "${entry} is not a module: add its row to cmake/layers.txt, or move it")
    endif()
  endforeach()
  foreach(module IN LISTS SLUICE_LAYERS)
    sluice_module_folder(${module} folder)
    if(NOT EXISTS "${source_dir}/${folder}/CMakeLists.txt")
      message(FATAL_ERROR
        "cmake/layers.txt names '${module}', but ${folder}/CMakeLists.txt does not exist")
    endif()
  endforeach()
endfunction()
