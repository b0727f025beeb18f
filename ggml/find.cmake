# Decides where ggml comes from, unmodified. In this order:
#   PENELOPE_GGML_DIR   a ggml source tree
#   an installed ggml   of the version we need (PENELOPE_GGML=auto or system)
#   the pinned archive  fetched once into a cache outside the build folder (PENELOPE_GGML=auto or pinned)
# Afterwards either the target ggml::ggml exists and PENELOPE_GGML_SOURCE is empty, or PENELOPE_GGML_SOURCE is a source
# tree for CMakeLists.txt beside this file. Included by the main CMakeLists.txt, because imported targets are visible
# only where they were found and below.

set(PENELOPE_GGML_DIR "" CACHE PATH "A ggml source tree to build instead of an installed or the pinned ggml")
set(PENELOPE_GGML "auto" CACHE STRING "Where ggml comes from: auto, system (installed), pinned (the archive)")
set_property(CACHE PENELOPE_GGML PROPERTY STRINGS auto system pinned)

# ggml changes its interfaces between minor versions.
set(PENELOPE_GGML_NEEDED 0.23.0)
set(PENELOPE_GGML_EXCLUDED 0.24.0)
set(PENELOPE_GGML_RANGE "${PENELOPE_GGML_NEEDED} or newer, below ${PENELOPE_GGML_EXCLUDED}, is needed")

# Looks for an installed ggml; ${why} becomes empty, or says why none is used. One without a backend that was asked for
# ends the configuration: its targets exist already, and would be in the way of a ggml built here.
macro(penelope_find_installed_ggml why)
  find_package(ggml ${PENELOPE_GGML_NEEDED}...<${PENELOPE_GGML_EXCLUDED} CONFIG QUIET)
  set(${why} "")
  if(ggml_FOUND)
    foreach(backend CUDA HIP VULKAN METAL SYCL OPENCL BLAS RPC)
      string(TOLOWER "ggml-${backend}" library)
      if("$CACHE{GGML_${backend}}" AND NOT library IN_LIST GGML_AVAILABLE_BACKENDS)
        message(FATAL_ERROR "The installed ggml ${ggml_VERSION} in ${ggml_DIR} lacks the ${backend} backend asked for. "
          "Set PENELOPE_GGML=pinned to build one that has it.")
      endif()
    endforeach()
  elseif(ggml_CONSIDERED_VERSIONS)
    set(${why} "the installed ggml has version ${ggml_CONSIDERED_VERSIONS}: ${PENELOPE_GGML_RANGE}")
  else()
    set(${why} "no installed ggml was found")
  endif()
endmacro()

# Sets ${result} to the path of a pinned thing, fetching it if it is not in the cache yet.
function(penelope_fetch what result)
  find_program(PENELOPE_PYTHON python3 DOC "The python3 that runs ggml/fetch")
  if(NOT PENELOPE_PYTHON)
    message(FATAL_ERROR "python3 is needed to fetch ${what} (Debian: apt-get install python3 python3-pip), "
      "or give source trees with -DPENELOPE_GGML_DIR= and -DPENELOPE_JINJA_DIR=")
  endif()
  execute_process(COMMAND ${PENELOPE_PYTHON} ${PROJECT_SOURCE_DIR}/ggml/fetch ${what}
    RESULT_VARIABLE failed OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    message(FATAL_ERROR "${what} could not be fetched, the reason is above. Run 'ggml/fetch ${what}' to try again, "
      "or give source trees with -DPENELOPE_GGML_DIR= and -DPENELOPE_JINJA_DIR=")
  endif()
  set(${result} ${path} PARENT_SCOPE)
endfunction()

# Stops unless dir is a ggml source tree of a version we can use.
function(penelope_check_ggml_source dir)
  if(NOT EXISTS ${dir}/CMakeLists.txt OR NOT EXISTS ${dir}/include/ggml.h)
    message(FATAL_ERROR "${dir} is not a ggml source tree: it has no CMakeLists.txt or no include/ggml.h")
  endif()
  file(STRINGS ${dir}/CMakeLists.txt lines REGEX "^set\\(GGML_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+\\)")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  list(JOIN numbers "." version)
  if(NOT version OR version VERSION_LESS PENELOPE_GGML_NEEDED OR NOT version VERSION_LESS PENELOPE_GGML_EXCLUDED)
    message(FATAL_ERROR "${dir} has ggml version '${version}': ${PENELOPE_GGML_RANGE}")
  endif()
  message(STATUS "ggml: ${version} built from ${dir}")
endfunction()

if(NOT PENELOPE_GGML MATCHES "^(auto|system|pinned)$")
  message(FATAL_ERROR "PENELOPE_GGML is '${PENELOPE_GGML}': expected auto, system or pinned")
endif()

set(PENELOPE_GGML_SOURCE "${PENELOPE_GGML_DIR}")
if(NOT PENELOPE_GGML_SOURCE)
  set(unusable "the pinned archive was asked for")
  if(NOT PENELOPE_GGML STREQUAL "pinned")
    penelope_find_installed_ggml(unusable)
  endif()
  if(NOT unusable)
    message(STATUS "ggml: installed ${ggml_VERSION} in ${ggml_DIR}")
  elseif(PENELOPE_GGML STREQUAL "system")
    message(FATAL_ERROR "PENELOPE_GGML=system: ${unusable}. Point CMAKE_PREFIX_PATH to one, or set PENELOPE_GGML=auto.")
  else()
    message(STATUS "ggml: ${unusable}; taking the pinned archive")
    penelope_fetch(ggml PENELOPE_GGML_SOURCE)
  endif()
endif()
if(PENELOPE_GGML_SOURCE)
  penelope_check_ggml_source(${PENELOPE_GGML_SOURCE})
endif()
