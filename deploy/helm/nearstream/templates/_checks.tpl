{{/* Refuses values with which every pod would end at its start. */}}
{{- define "nearstream.checked" -}}
{{- $_ := include "nearstream.image" . }}
{{- $secret := .Values.secret.settings }}
{{- $given := merge (dict) .Values.settings $secret }}
{{- if and $secret (not .Values.secret.name) }}
{{- fail "secret.name: expected the name of the Secret that holds secret.settings" }}
{{- end }}
{{- if ne (get .Values.settings "NEARSTREAM_PROFILE") "development" }}
{{- range list "NEARSTREAM_KAFKA" "NEARSTREAM_REDIS" }}
{{- if not (get $given .) }}
{{- fail (printf "settings.%s: expected an address, here or under secret.settings (profile %s)" . (get $given "NEARSTREAM_PROFILE")) }}
{{- end }}
{{- end }}
{{- range ternary (list "HASH_KEY" "STATUS_TOKEN" "API_TOKEN") (list "HASH_KEY" "STATUS_TOKEN") .Values.serve.enabled }}
{{- if not (get $secret (printf "NEARSTREAM_%s" .)) }}
{{- fail (printf "secret.settings.NEARSTREAM_%s: expected the key of your Secret that holds it (profile %s)" . (get $given "NEARSTREAM_PROFILE")) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Annotations of a pod, which change with what the Secrets hold, so that an upgrade starts the pods again. */}}
{{- define "nearstream.annotations" -}}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- range $name := list .Values.secret.name .Values.files.secretName }}
{{- if $name }}
checksum/{{ $name }}: {{ (lookup "v1" "Secret" $.Release.Namespace $name).data | toJson | sha256sum }}
{{- end }}
{{- end }}
{{- end }}
