{{- define "nearstream.labels" -}}
app.kubernetes.io/name: nearstream
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nearstream.account" -}}
{{ .Values.serviceAccount.name | default (ternary .Release.Name "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "nearstream.image" -}}
{{ required "image.repository: expected the image that you built, registry/name" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The pod of a command. Takes a dict of root, args, and own (the variables of this command alone). */}}
{{- define "nearstream.pod" -}}
{{- $root := .root -}}
{{- $_ := include "nearstream.checked" $root -}}
serviceAccountName: {{ ternary (include "nearstream.account" $root) "default" (not .isHook) }}
automountServiceAccountToken: {{ and (not .isHook) $root.Values.serviceAccount.automountToken }}
terminationGracePeriodSeconds: {{ $root.Values.terminationGracePeriodSeconds }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile:
    type: RuntimeDefault
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and $root.Values.topologySpread (not .isHook) }}
topologySpreadConstraints:
  {{- range $key := $root.Values.topologySpread }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "nearstream.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ $.component }}
  {{- end }}
{{- end }}
containers:
  - name: nearstream
    image: {{ include "nearstream.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    args: {{ toJson .args }}
    env:
      {{- range $name, $value := merge (dict) .own $root.Values.settings }}
      - name: {{ $name }}
        value: {{ $value | quote }}
      {{- end }}
      {{- range $name, $key := $root.Values.secret.settings }}
      - name: {{ $name }}_FILE
        value: /etc/nearstream/secret/{{ $key }}
      {{- end }}
      {{- range $name, $key := $root.Values.files.settings }}
      - name: {{ $name }}
        value: /etc/nearstream/files/{{ $key }}
      {{- end }}
    {{- if .port }}
    ports:
      - name: http
        containerPort: {{ .port }}
    # The index of a new deployment may take a while to be filled, and brokers to answer.
    startupProbe:
      httpGet: {path: /healthz, port: http}
      periodSeconds: 5
      failureThreshold: 24
      timeoutSeconds: 5
    livenessProbe:
      httpGet: {path: /healthz, port: http}
      periodSeconds: 15
      failureThreshold: 4
      timeoutSeconds: 5
    readinessProbe:
      httpGet: {path: /readyz, port: http}
      periodSeconds: 10
      timeoutSeconds: 5
    {{- end }}
    resources:
      {{- toYaml .resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop: [ALL]
    volumeMounts:
      - name: tmp
        mountPath: /tmp
      {{- if $root.Values.secret.name }}
      - name: secret
        mountPath: /etc/nearstream/secret
        readOnly: true
      {{- end }}
      {{- if $root.Values.files.secretName }}
      - name: files
        mountPath: /etc/nearstream/files
        readOnly: true
      {{- end }}
volumes:
  - name: tmp
    emptyDir:
      medium: Memory
      sizeLimit: 64Mi
  {{- with $root.Values.secret.name }}
  - name: secret
    secret:
      secretName: {{ . }}
      defaultMode: 0440
  {{- end }}
  {{- with $root.Values.files.secretName }}
  - name: files
    secret:
      secretName: {{ . }}
      defaultMode: 0440
  {{- end }}
{{- end }}
