// Writes JSON schemas for kubeconform into a folder, made of the API's own Go types: fields that a
// type does not have are refused, and so are values of another type.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type schema map[string]any

// Types that are written otherwise than their fields.
var written = map[reflect.Type]schema{
	reflect.TypeOf(intstr.IntOrString{}): {"type": []string{"integer", "string"}},
	reflect.TypeOf(resource.Quantity{}):  {"type": []string{"integer", "number", "string"}},
	reflect.TypeOf(meta.Time{}):          {"type": []string{"string", "null"}},
	reflect.TypeOf(meta.FieldsV1{}):      {"type": "object"},
}

func of(t reflect.Type, defs schema) schema {
	if known, ok := written[t]; ok {
		return known
	}
	switch t.Kind() {
	case reflect.Pointer:
		return of(t.Elem(), defs)
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number"}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": of(t.Elem(), defs)}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return schema{"type": "string"}
		}
		return schema{"type": "array", "items": of(t.Elem(), defs)}
	case reflect.Struct:
		name := strings.ReplaceAll(t.PkgPath(), "/", ".") + "." + t.Name()
		if _, begun := defs[name]; !begun {
			object := schema{"type": "object", "additionalProperties": false}
			defs[name] = object
			fields := schema{}
			put(t, fields, defs)
			object["properties"] = fields
		}
		return schema{"$ref": "#/definitions/" + name}
	default:
		return schema{"type": "integer"}
	}
}

func put(t reflect.Type, fields, defs schema) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" {
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			put(inner, fields, defs)
			continue
		}
		fields[name] = of(field.Type, defs)
	}
}

func main() {
	for file, kind := range map[string]any{
		"deployment-apps-v1":            apps.Deployment{},
		"daemonset-apps-v1":             apps.DaemonSet{},
		"service-v1":                    core.Service{},
		"configmap-v1":                  core.ConfigMap{},
		"secret-v1":                     core.Secret{},
		"poddisruptionbudget-policy-v1": policy.PodDisruptionBudget{},
		"servicemonitor-monitoring-v1":  monitoring.ServiceMonitor{},
	} {
		defs := schema{}
		whole := of(reflect.TypeOf(kind), defs)
		whole["definitions"] = defs
		text, err := json.Marshal(whole)
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], file+".json"), text, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
