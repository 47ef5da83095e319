//go:build ignore

// Generate writes the Go code of api/proto: run it by 'go generate ./api/gen'.
package main

import (
	"bytes"
	"context"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/pluginpb"
)

var files = []string{"agentrun/node/v1/node.proto", "e2b/process/process.proto", "e2b/filesystem/filesystem.proto"}

func main() {
	log.SetFlags(0)
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{"../proto"}}), SourceInfoMode: protocompile.SourceInfoStandard}
	compiled, err := compiler.Compile(context.Background(), files...)
	if err != nil {
		log.Fatal(err)
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: files, Parameter: proto.String("paths=source_relative")}
	request.ProtoFile = append(request.ProtoFile, protodesc.ToFileDescriptorProto(timestamppb.File_google_protobuf_timestamp_proto))
	for _, f := range compiled {
		request.ProtoFile = append(request.ProtoFile, protoutil.ProtoFromFileDescriptor(f))
	}
	in, err := proto.Marshal(request)
	if err != nil {
		log.Fatal(err)
	}
	for _, plugin := range []string{"google.golang.org/protobuf/cmd/protoc-gen-go", "connectrpc.com/connect/cmd/protoc-gen-connect-go"} {
		run := exec.Command("go", "run", plugin)
		run.Stdin, run.Stderr = bytes.NewReader(in), os.Stderr
		out, err := run.Output()
		if err != nil {
			log.Fatal(err)
		}
		var response pluginpb.CodeGeneratorResponse
		if err := proto.Unmarshal(out, &response); err != nil {
			log.Fatal(err)
		}
		if response.GetError() != "" {
			log.Fatal(response.GetError())
		}
		for _, f := range response.File {
			if err := os.MkdirAll(filepath.Dir(f.GetName()), 0o755); err != nil {
				log.Fatal(err)
			}
			if err := os.WriteFile(f.GetName(), []byte(f.GetContent()), 0o644); err != nil {
				log.Fatal(err)
			}
		}
	}
}
