require ["copy", "imapsieve", "variables", "vnd.dovecot.pipe"];
if header :matches "message-id" "*" { pipe :copy :try "label" ["spam", "${1}"]; }
