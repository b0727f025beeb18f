# cmake -DPENELOPE=PROGRAM -DOUT=FOLDER -P manual.cmake: manual pages and completion, written by the program itself.

function(write_help file)
  execute_process(COMMAND ${PENELOPE} help ${ARGN} OUTPUT_FILE ${OUT}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# A program for a device may need the library of its driver, which a machine that only builds does not have.
set(cannot_start 127)
execute_process(COMMAND ${PENELOPE} help --commands RESULT_VARIABLE result OUTPUT_VARIABLE commands OUTPUT_STRIP_TRAILING_WHITESPACE)
if(result EQUAL cannot_start)
  message(WARNING "${PENELOPE} does not start on this machine: its manual pages and completion are left out")
  return()
elseif(NOT result EQUAL 0)
  message(FATAL_ERROR "${PENELOPE} help --commands: ${result}")
endif()

file(MAKE_DIRECTORY ${OUT}/man1)
write_help(man1/penelope.1 --man)
write_help(completion --completion)
string(REPLACE "\n" ";" commands "${commands}")
foreach(command ${commands})
  write_help(man1/penelope-${command}.1 --man ${command})
endforeach()
