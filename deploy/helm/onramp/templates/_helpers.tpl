{{- define "onramp.name" -}}
{{- printf "%s-onramp" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "onramp.selector" -}}
app.kubernetes.io/name: onramp
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "onramp.labels" -}}
{{ include "onramp.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "onramp.secret" -}}
{{- .Values.secret.existing | default (include "onramp.name" .) -}}
{{- end -}}

{{- /* A quoted text of TOML. */ -}}
{{- define "onramp.toml" -}}
{{- if kindIs "string" . }}{{ . | toJson }}{{ else if and (kindIs "float64" .) (eq . (floor .)) }}{{ . | int64 }}{{ else }}{{ . | toJson }}{{ end -}}
{{- end -}}

{{- /* MiB of memory by clients. */ -}}
{{- define "onramp.memory" -}}
{{- add 64 (div (mul 6 (int64 .Values.clientsMax)) 1024) -}}
{{- end -}}

{{- define "onramp.pod" -}}
metadata:
  labels:
    {{- include "onramp.labels" . | nindent 4 }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ add .Values.drain.waitSeconds .Values.drain.spreadSeconds .Values.drain.maxSeconds 5 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: onramp
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: ["pool", "--config", "/etc/onramp/pool.toml"]
      ports:
        - name: mysql
          containerPort: 6033
        - name: http
          containerPort: {{ .Values.httpPort }}
      # It lives while the server is waited for, and is ready when the server was reached.
      livenessProbe:
        httpGet:
          path: /healthz
          port: http
        periodSeconds: 10
        failureThreshold: 3
      readinessProbe:
        httpGet:
          path: /readyz
          port: http
        periodSeconds: 2
        failureThreshold: 2
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: ["ALL"]
      resources:
        {{- if .Values.resources }}
        {{- toYaml .Values.resources | nindent 8 }}
        {{- else }}
        requests:
          cpu: {{ .Values.cpu | quote }}
          memory: {{ include "onramp.memory" . }}Mi
        limits:
          memory: {{ mul 3 (include "onramp.memory" .) }}Mi
        {{- end }}
      volumeMounts:
        - name: config
          mountPath: /etc/onramp
          readOnly: true
        - name: state
          mountPath: /var/lib/onramp
  volumes:
    # One volume: a change of either source writes all files anew, and the pool reads them again.
    - name: config
      projected:
        defaultMode: 0440
        sources:
          - configMap:
              name: {{ include "onramp.name" . }}
          - secret:
              name: {{ include "onramp.secret" . }}
    - name: state
      emptyDir: {}
  {{- if .Values.topologySpread.enabled }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: {{ .Values.topologySpread.topologyKey }}
      whenUnsatisfiable: {{ .Values.topologySpread.whenUnsatisfiable }}
      labelSelector:
        matchLabels:
          {{- include "onramp.selector" . | nindent 10 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
