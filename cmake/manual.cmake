# cmake -DPENELOPE=PROGRAM -DOUT=FOLDER -P manual.cmake: manual pages and completion, written by the program itself.

function(write_help file)
  execute_process(COMMAND ${PENELOPE} help ${ARGN} OUTPUT_FILE ${OUT}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(MAKE_DIRECTORY ${OUT}/man1)
write_help(man1/penelope.1 --man)
write_help(completion --completion)
execute_process(COMMAND ${PENELOPE} help --commands OUTPUT_VARIABLE commands OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" commands "${commands}")
foreach(command ${commands})
  write_help(man1/penelope-${command}.1 --man ${command})
endforeach()
