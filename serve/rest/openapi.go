package rest

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentrun.dev/api"
)

// docs.json holds the comments of package api's types and fields, for the schemas' descriptions. A test sees that it is up to date.
//
//go:generate go test -run ^TestDocs$ -update .

//go:embed docs.json
var docsJSON []byte

// object is a JSON object of the document.
type object = map[string]any

// openapi answers with the OpenAPI 3.1 document of this API. It is made of the table of routes, which is all that the server goes
// by, and of package api's types.
func (s *server) openapi(w http.ResponseWriter, r *request) error {
	return answer(w, r, http.StatusOK, s.document())
}

// describeAll makes the document.
func (s *server) describeAll() object {
	docs := map[string]string{}
	if err := json.Unmarshal(docsJSON, &docs); err != nil {
		panic(err) // it is part of the program, and tested
	}
	g := &schemas{shapes: s.shapes, docs: docs, inputs: map[reflect.Type]bool{}, all: object{}}
	for _, rt := range s.table {
		g.takes(rt.in)
	}
	g.takes(t[api.Exec]())
	paths := object{}
	for i := range s.table {
		rt := &s.table[i]
		at := strings.ReplaceAll(rt.path(), "...}", "}")
		ops, _ := paths[at].(object)
		if ops == nil {
			ops = object{}
			paths[at] = ops
		}
		ops[strings.ToLower(rt.method())] = g.operation(rt)
	}
	g.ref(t[api.Exec]()) // of the WebSockets
	g.ref(t[api.Control]())
	problem := object{"description": "An error (RFC 9457)", "content": object{api.ProblemJSON: object{"schema": g.ref(t[api.Problem]())}}}
	version := s.Version
	if version == "" {
		version = "unknown"
	}
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "AgentRun", "version": version, "description": "Sandboxes for agents, on buckets that fork. Requests and answers are JSON; " +
			"unknown fields and parameters are refused. Errors are problems (RFC 9457). Lists are pages: next is the cursor of the following one. " +
			"What may take long is a stream, of server-sent events or lines of JSON, by Accept. POST requests that make something take an Idempotency-Key."},
		"servers":  []any{object{"url": "/"}},
		"security": []any{object{"key": []any{}}},
		"paths":    paths,
		"components": object{
			"schemas":         g.all,
			"responses":       object{"Problem": problem},
			"securitySchemes": object{"key": object{"type": "http", "scheme": "bearer", "description": "An API key, <id>.<secret>"}},
		},
	}
}

var pathParam = regexp.MustCompile(`\{([a-z]+)(\.\.\.)?\}`)

// operation describes a route.
func (g *schemas) operation(rt *route) object {
	segments := strings.Split(strings.TrimPrefix(rt.path(), "/v1/"), "/")
	op := object{"operationId": rt.id, "summary": rt.about, "tags": []any{strings.TrimSuffix(segments[0], ".json")}, "responses": g.responses(rt)}
	if rt.public {
		op["security"] = []any{}
	}
	if params := g.parameters(rt); len(params) > 0 {
		op["parameters"] = params
	}
	switch {
	case rt.raw == "in":
		op["requestBody"] = object{"required": true, "content": object{api.Bytes: object{"schema": object{"type": "string", "format": "binary"}}}}
	case rt.in != nil && rt.in != t[struct{}]():
		needed := slices.ContainsFunc(g.shapes.fields(rt.in), func(f field) bool { return required(rt.in, f) })
		op["requestBody"] = object{"required": needed, "content": object{api.JSON: object{"schema": g.ref(rt.in)}}}
	}
	return op
}

func (g *schemas) parameters(rt *route) []any {
	var out []any
	for _, m := range pathParam.FindAllStringSubmatch(rt.path(), -1) {
		schema := object{"type": "string", "minLength": 1}
		switch {
		case m[1] == "pid" || m[1] == "port":
			schema = object{"type": "integer", "minimum": 1}
			if m[1] == "port" {
				schema["maximum"] = 65535
			}
		case m[1] == "name" && rt.method() == "PUT":
			schema = object{"type": "string", "pattern": label}
		}
		out = append(out, object{"name": m[1], "in": "path", "required": true, "schema": schema})
	}
	for _, p := range rt.query {
		schema := object{"type": "string"}
		switch p.kind {
		case numeric:
			schema = object{"type": "integer", "minimum": p.min}
			if p.max > 0 {
				schema["maximum"] = p.max
			}
		case boolean:
			schema = object{"type": "boolean"}
		case textual:
			switch {
			case len(p.enum) > 0:
				schema["enum"] = p.enum
			case p.pattern != "":
				schema["pattern"] = p.pattern
			case p.required:
				schema["minLength"] = 1
			}
		}
		if p.many {
			schema = object{"type": "array", "items": schema}
		}
		o := object{"name": p.name, "in": "query", "description": p.about, "schema": schema}
		if p.required {
			o["required"] = true
		}
		if p.many {
			o["explode"] = true
		}
		out = append(out, o)
	}
	header := func(name, about string, schema object) {
		out = append(out, object{"name": name, "in": "header", "description": about, "schema": schema})
	}
	if rt.once {
		header("Idempotency-Key", "The request is done once for a key; again within 24 hours, it is answered as the first was",
			object{"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"})
	}
	if rt.resumes {
		header("Last-Event-ID", "The position after which a stream goes on", object{"type": "string", "pattern": "^[0-9]{1,18}$"})
	}
	if rt.raw == "out" && rt.also == http.StatusPartialContent {
		header("Range", "One range of bytes (RFC 9110, section 14)", object{"type": "string"})
	}
	return out
}

// responses describes what a route answers.
func (g *schemas) responses(rt *route) object {
	ok := object{"description": http.StatusText(rt.status)}
	content := object{}
	if rt.out != nil {
		content[api.JSON] = object{"schema": g.schema(rt.out)}
	}
	switch rt.stream {
	case lines:
		content[api.NDJSON] = object{"schema": object{"type": "string", "description": "Lines of JSON, each with one of item, progress, result and error; " +
			"one that doesn't end in a result or an error was cut off"}, "x-item": g.schema(rt.item), "x-result": g.schema(rt.out)}
		if rt.only {
			delete(content, api.JSON)
		}
	case feeds:
		stream := func(about string) object {
			return object{"schema": object{"type": "string", "description": about}, "x-item": g.schema(rt.item)}
		}
		if !rt.noEvents {
			content[api.EventStream] = stream("Server-sent events, whose data are JSON")
		}
		content[api.NDJSON] = stream("Lines of JSON")
	case socket:
		ok["description"] = "A WebSocket of subprotocol " + api.ExecProtocol + ": the first message is an Exec, others are Controls, or bytes of a stream"
	}
	switch rt.raw {
	case "out":
		content[api.Bytes] = object{"schema": object{"type": "string", "format": "binary"}}
	case "any":
		content["*/*"] = object{}
	}
	if len(content) > 0 {
		ok["content"] = content
	}
	if rt.status == http.StatusCreated && rt.out != nil {
		ok["headers"] = object{"Location": object{"description": "Where it is", "schema": object{"type": "string"}}}
	}
	out := object{strconv.Itoa(rt.status): ok}
	if rt.also != 0 {
		out[strconv.Itoa(rt.also)] = ok
	}
	problem := object{"$ref": "#/components/responses/Problem"}
	statuses := []int{400}
	if !rt.public {
		statuses = append(statuses, 401, 403)
	}
	if strings.Contains(rt.path(), "{") {
		statuses = append(statuses, 404, 409)
	}
	if rt.once {
		statuses = append(statuses, 409, 422)
	}
	for _, status := range append(statuses, rt.statuses...) {
		out[strconv.Itoa(status)] = problem
	}
	out["default"] = problem
	return out
}
