package rest

import (
	"encoding"
	"reflect"
	"time"

	"agentrun.dev/api"
)

// schemas makes JSON schemas of Go types.
type schemas struct {
	shapes *shapes
	docs   map[string]string
	inputs map[reflect.Type]bool // structs that requests have
	all    object                // by name
}

// enums are the values of fields that have few.
func enums(field string) []string {
	switch field {
	case "TemplateSpec.engine":
		return []string{"", api.Userspace, api.OCI, api.MicroVM}
	case "TemplateSpec.language", "Run.language", "Exec.language":
		return []string{"", api.Shell, api.Python, api.JavaScript}
	case "TemplateSpec.mounts":
		return []string{"private", "shared", "public"}
	case "Volume.forkPolicy":
		return []string{"", api.Fresh, api.Share, api.SnapshotPolicy, api.Clone}
	case "NetworkPolicy.egress":
		return []string{"", "deny", "allow"}
	case "Lease.mode":
		return []string{"", api.Sliding, api.Fixed}
	case "Lease.wake":
		return []string{"", api.WakeOnUse, api.WakeOnResume}
	case "Lease.onExpiry":
		return []string{"", api.Hibernate, api.End}
	case "Template.state":
		return []string{api.BuildQueued, api.BuildRunning, api.BuildReady, api.BuildFailed}
	case "Sandbox.state":
		return []string{api.StateStarting, api.StateWarm, api.StateRunning, api.StateHibernating, api.StateHibernated, api.StateResuming, api.StateEnding, api.StateEnded, api.StateFailed}
	case "CreateSandbox.visibility":
		return []string{"", api.Private, api.Team, api.All}
	case "SecretUse.fork":
		return []string{"", "same", "drop"}
	case "Merge.conflicts", "MergeSandbox.conflicts":
		return []string{"", api.Fail, api.Ours, api.Theirs}
	case "Scope.role":
		return []string{api.ReadOnly, api.ReadWrite}
	case "Principal.role":
		return []string{api.RoleAdmin, api.RoleOperator, api.RoleUser, api.RoleViewer}
	case "Agent.mode":
		return []string{api.ModeNone, api.ModeFixed, api.ModePerUser, api.ModeChoose, api.ModeFresh}
	case "RunEvent.type":
		return []string{"start", "stdout", "stderr", "exit", "error"}
	case "FileInfo.type":
		return []string{"file", "directory", "symlink", "other"}
	}
	return nil
}

// Patterns of names.
const (
	label      = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
	bucketName = "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"
)

// bounds are what requests' fields must hold to, beyond their types.
func bounds(field string) object {
	const decade, century = 10 * 365 * 24 * 60 * 60, 100 * 365 * 24 * 60 * 60
	between := func(least, most int) object { return object{"minimum": least, "maximum": most} }
	switch field {
	case "CreateTemplate.name", "Volume.name", "PoolSpec.template", "Reserve.pool":
		return object{"pattern": label}
	case "CreateBucket.name":
		return object{"pattern": bucketName}
	case "Lease.duration", "Lease.extend", "Lease.maxAge", "Lease.sleep", "Lease.retention", "Extend.seconds", "Agent.retention":
		return between(0, decade)
	case "CreateKey.lifetime", "TakeSnapshot.lifetime":
		return between(0, century)
	case "Reserve.seconds":
		return between(0, 600)
	case "PoolSpec.replicas":
		return between(0, api.MaxReplicas)
	case "ForkSpec.replicas":
		return between(1, api.MaxForks)
	case "ForkSandbox.count":
		return between(0, api.MaxForks)
	case "PoolSpec.maxSandboxes", "Volume.size", "Resources.memory", "Resources.disk", "Resources.processes", "Resources.cpu",
		"Rate.bytesPerSecond", "Rate.operationsPerSecond", "Rate.burstBytes", "Rate.burstOperations":
		return object{"minimum": 0}
	case "Run.timeout":
		return between(0, 1e9)
	case "FileAction.path":
		return object{"minLength": 1, "maxLength": maxPath}
	case "FileAction.mode":
		return between(0, 0o7777)
	}
	return nil
}

// takes notes the structs that a request's type has.
func (g *schemas) takes(t reflect.Type) {
	if t == nil {
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		g.takes(t.Elem())
	case reflect.Struct:
		if leaf(t) || g.inputs[t] {
			return
		}
		g.inputs[t] = true
		for _, f := range g.shapes.fields(t) {
			g.takes(f.typ)
		}
	}
}

// leaf reports whether a struct is one value in JSON.
func leaf(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// ref describes a struct among the document's schemas, and refers to it.
func (g *schemas) ref(t reflect.Type) object {
	name := t.Name()
	if _, ok := g.all[name]; !ok {
		s := object{"type": "object"}
		g.all[name] = s // before its fields, among which it may be again
		if d := g.docs[name]; d != "" {
			s["description"] = d
		}
		properties, needed := object{}, []string{}
		for _, f := range g.shapes.fields(t) {
			properties[f.name] = g.property(name, f)
			if g.inputs[t] && required(t, f) || !g.inputs[t] && !f.optional {
				needed = append(needed, f.name)
			}
		}
		s["properties"] = properties
		if len(needed) > 0 {
			s["required"] = needed
		}
		if g.inputs[t] {
			s["additionalProperties"] = false
		}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (g *schemas) property(parent string, f field) object {
	s := g.schema(f.typ)
	if f.asString {
		s = object{"type": "string", "pattern": "^[0-9]+$"}
	}
	if values := enums(parent + "." + f.name); values != nil {
		if items, ok := s["items"].(object); ok {
			items["enum"] = values
		} else {
			s["enum"] = values
		}
	}
	for k, v := range bounds(parent + "." + f.name) {
		s[k] = v
	}
	if d := g.docs[parent+"."+f.name]; d != "" {
		s["description"] = d
	}
	return s
}

// schema describes a type in place.
func (g *schemas) schema(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[api.Version]():
		return object{"type": "string", "pattern": "^[0-9]+$"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.schema(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number", "format": "double"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": g.schema(t.Elem())}
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return object{"type": "object"}
		}
		value := g.schema(t.Elem())
		if t.Elem().Kind() == reflect.Pointer { // null takes the value away
			value = object{"type": []string{"string", "null"}}
		}
		return object{"type": "object", "additionalProperties": value}
	}
	return g.ref(t)
}
