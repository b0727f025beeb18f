# Finds everything but ggml. All that is missing is reported at once, with the Debian packages that bring it.

set(missing_names "")
set(missing_packages "")

# penelope_need(NAME DEBIAN_PACKAGE FOUND): notes NAME as missing unless FOUND is true.
macro(penelope_need name debian_package found)
  if(NOT "${found}")
    list(APPEND missing_names "${name}")
    list(APPEND missing_packages ${debian_package})
  endif()
endmacro()

find_package(nlohmann_json 3.9 QUIET)
penelope_need("nlohmann-json >= 3.9" nlohmann-json3-dev "${nlohmann_json_FOUND}")

find_package(tomlplusplus QUIET)
penelope_need("toml++" libtomlplusplus-dev "${tomlplusplus_FOUND}")

find_package(OpenSSL QUIET COMPONENTS Crypto)
penelope_need("OpenSSL" libssl-dev "${OPENSSL_FOUND}")

if(PENELOPE_PROGRAM)
  find_package(CLI11 2.1 QUIET)
  penelope_need("CLI11 >= 2.1" libcli11-dev "${CLI11_FOUND}")
endif()

if(PENELOPE_TESTS)
  find_package(doctest QUIET)
  penelope_need("doctest" doctest-dev "${doctest_FOUND}")
endif()

find_package(PkgConfig QUIET)
penelope_need("pkg-config" pkg-config "${PKG_CONFIG_FOUND}")
if(PKG_CONFIG_FOUND)
  pkg_check_modules(PCRE2 QUIET IMPORTED_TARGET libpcre2-8)
  penelope_need("PCRE2 (8 bit)" libpcre2-dev "${PCRE2_FOUND}")
  pkg_check_modules(UTF8PROC QUIET IMPORTED_TARGET libutf8proc)
  penelope_need("utf8proc" libutf8proc-dev "${UTF8PROC_FOUND}")
  if(PENELOPE_PROGRAM)
    pkg_check_modules(LIBEDIT QUIET IMPORTED_TARGET libedit)
    penelope_need("libedit" libedit-dev "${LIBEDIT_FOUND}")
    pkg_check_modules(HTTPLIB QUIET IMPORTED_TARGET cpp-httplib)
    penelope_need("cpp-httplib" libcpp-httplib-dev "${HTTPLIB_FOUND}")
  endif()
endif()

# For models by name.
set(PENELOPE_CURL "auto" CACHE STRING "Download models by name through libcurl: auto (if it is found), on, off")
set_property(CACHE PENELOPE_CURL PROPERTY STRINGS auto on off)
string(TOLOWER "${PENELOPE_CURL}" curl)
set(PENELOPE_HAS_CURL OFF)
if(NOT curl MATCHES "^(auto|on|off)$")
  message(FATAL_ERROR "PENELOPE_CURL is '${PENELOPE_CURL}': expected auto, on or off")
elseif(PENELOPE_PROGRAM AND PKG_CONFIG_FOUND AND NOT curl STREQUAL "off")
  # Older ones send the token to another port of the same host.
  pkg_check_modules(CURL QUIET IMPORTED_TARGET libcurl>=7.83)
  set(PENELOPE_HAS_CURL ${CURL_FOUND})
  if(curl STREQUAL "on")
    penelope_need("libcurl >= 7.83" libcurl4-openssl-dev "${CURL_FOUND}")
  endif()
endif()
message(STATUS "libcurl: ${PENELOPE_HAS_CURL}")

# For training on several processes or machines.
set(PENELOPE_MPI "auto" CACHE STRING "Train on several ranks through MPI: auto (if it is found), on, off")
set_property(CACHE PENELOPE_MPI PROPERTY STRINGS auto on off)
string(TOLOWER "${PENELOPE_MPI}" mpi)
set(PENELOPE_HAS_MPI OFF)
if(mpi STREQUAL "auto" OR mpi STREQUAL "on")
  find_package(MPI QUIET COMPONENTS C)
  set(PENELOPE_HAS_MPI ${MPI_C_FOUND})
  if(mpi STREQUAL "on")
    penelope_need("MPI" "libopenmpi-dev;openmpi-bin" "${MPI_C_FOUND}")
  endif()
elseif(NOT mpi STREQUAL "off")
  message(FATAL_ERROR "PENELOPE_MPI is '${PENELOPE_MPI}': expected auto, on or off")
endif()
message(STATUS "MPI: ${PENELOPE_HAS_MPI}")

find_package(Threads REQUIRED)

if(missing_names)
  list(JOIN missing_names ", " names)
  list(JOIN missing_packages " " packages)
  message(FATAL_ERROR "Missing: ${names}.\nOn Debian: apt-get install ${packages}")
endif()
