# Joins archives into one object file whose only global names are the public ones.
#   cmake -DLINKER=ld -DNM=nm -DOBJCOPY=objcopy -DARCHIVES=list -DSYMBOLS=public_symbols.map \
#     -DOUTPUT=file.o -P join_objects.cmake
foreach(name LINKER NM OBJCOPY ARCHIVES SYMBOLS OUTPUT)
  if(NOT ${name})
    message(FATAL_ERROR "expected -D${name}=..., found none")
  endif()
endforeach()

# Equal functions of several objects become one here: later their names would be hidden.
execute_process(
  COMMAND ${LINKER} -r --force-group-allocation -o ${OUTPUT} --whole-archive ${ARCHIVES}
  COMMAND_ERROR_IS_FATAL ANY)

file(STRINGS ${SYMBOLS} public REGEX "^  [A-Za-z0-9_]+;$")
list(TRANSFORM public REPLACE "^  (.*);$" "\\1")
list(JOIN public "\n" public)
file(WRITE ${OUTPUT}.public "${public}\n")

# Names that g++ wants to be unique in a process, such as inline constants. objcopy hides them only
# after they have become weak.
execute_process(COMMAND ${NM} --defined-only ${OUTPUT}
  OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " u [^\n]+" unique "${lines}")
list(TRANSFORM unique REPLACE "^ u " "")
list(JOIN unique "\n" unique)
file(WRITE ${OUTPUT}.unique "${unique}\n")

execute_process(COMMAND ${OBJCOPY} --weaken-symbols=${OUTPUT}.unique ${OUTPUT}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${OBJCOPY} --keep-global-symbols=${OUTPUT}.public ${OUTPUT}
  COMMAND_ERROR_IS_FATAL ANY)
