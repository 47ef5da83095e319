package rpc

import (
	"time"

	"agentrun.dev/api"
	pb "agentrun.dev/api/gen/agentrun/node/v1"
	"agentrun.dev/engine"
	"agentrun.dev/errs"
	"agentrun.dev/node"
	"agentrun.dev/vfs"
	"agentrun.dev/volume"
)

func each[A, B any](list []A, f func(A) B) []B {
	if list == nil {
		return nil
	}
	out := make([]B, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// volumesOut refuses folders of the host: what is one here is none there.
func volumesOut(list []volume.Spec) ([]*pb.Volume, error) {
	for _, v := range list {
		if v.Host != "" {
			return nil, errs.Msg(errs.Unsupported, "volume", v.Name, "a folder of this host can't be mounted on another")
		}
	}
	return each(list, volumeOut), nil
}

func volumeOut(v volume.Spec) *pb.Volume {
	return &pb.Volume{Name: v.Name, Path: v.Path, Policy: string(v.Policy), ReadOnly: v.ReadOnly, Size: v.Size, Bucket: v.Bucket, Base: v.Base,
		Empty: v.Empty, Mode: uint32(v.Mode), Root: v.Root}
}

func volumeIn(v *pb.Volume) volume.Spec {
	return volume.Spec{Name: v.GetName(), Path: v.GetPath(), Policy: volume.Policy(v.GetPolicy()), ReadOnly: v.GetReadOnly(), Size: v.GetSize(),
		Bucket: v.GetBucket(), Base: v.GetBase(), Empty: v.GetEmpty(), Mode: vfs.Mode(v.GetMode()), Root: v.GetRoot()}
}

func infoOut(i *node.Info) *pb.NodeInfo {
	lacks := make(map[string]*pb.Features, len(i.Lacks))
	for name, list := range i.Lacks {
		lacks[name] = &pb.Features{Names: list}
	}
	return &pb.NodeInfo{Name: i.Name, Version: i.Version, Engines: i.Engines, Max: int64(i.Max), Cpus: int64(i.CPUs), Memory: i.Memory, Free: i.Free,
		Sandboxes: int64(i.Sandboxes), Lacks: lacks}
}

func infoIn(i *pb.NodeInfo) *node.Info {
	lacks := make(map[string][]string, len(i.GetLacks()))
	for name, list := range i.GetLacks() {
		lacks[name] = list.GetNames()
	}
	return &node.Info{Name: i.GetName(), Version: i.GetVersion(), Engines: i.GetEngines(), Max: int(i.GetMax()), CPUs: int(i.GetCpus()),
		Memory: i.GetMemory(), Free: i.GetFree(), Sandboxes: int(i.GetSandboxes()), Lacks: lacks}
}

func specOut(s node.Spec) (*pb.Spec, error) {
	volumes, err := volumesOut(s.Volumes)
	if err != nil {
		return nil, err
	}
	l := s.Limits
	return &pb.Spec{Id: s.ID, Name: s.Name, Volumes: volumes, Network: s.Network, Env: s.Env, Dir: s.Dir, Hostname: s.Hostname, Lease: int64(s.Lease),
		Engine: s.Engine, Root: s.Image,
		Limits: &pb.Limits{Memory: l.Memory, Cpu: int64(l.CPU), Processes: int64(l.Processes), Files: int64(l.Files), Output: l.Output, Written: l.Written,
			Vcpus: int64(l.VCPUs), Disk: rateOut(l.Disk), NetworkIn: rateOut(l.NetworkIn), NetworkOut: rateOut(l.NetworkOut)}}, nil
}

func specIn(s *pb.Spec) node.Spec {
	l := s.GetLimits()
	return node.Spec{ID: s.GetId(), Name: s.GetName(), Volumes: each(s.GetVolumes(), volumeIn), Network: s.GetNetwork(), Env: s.GetEnv(), Dir: s.GetDir(),
		Hostname: s.GetHostname(), Lease: time.Duration(s.GetLease()), Engine: s.GetEngine(), Image: s.GetRoot(), Limits: engine.Limits{Memory: l.GetMemory(), CPU: time.Duration(l.GetCpu()),
			Processes: int(l.GetProcesses()), Files: int(l.GetFiles()), Output: l.GetOutput(), Written: l.GetWritten(),
			VCPUs: int(l.GetVcpus()), Disk: rateIn(l.GetDisk()), NetworkIn: rateIn(l.GetNetworkIn()), NetworkOut: rateIn(l.GetNetworkOut())}}
}

func rateOut(r engine.Rate) *pb.Rate {
	if r == (engine.Rate{}) {
		return nil
	}
	return &pb.Rate{Bytes: r.Bytes, Ops: r.Ops, BurstBytes: r.BurstBytes, BurstOps: r.BurstOps}
}

func rateIn(r *pb.Rate) engine.Rate {
	return engine.Rate{Bytes: r.GetBytes(), Ops: r.GetOps(), BurstBytes: r.GetBurstBytes(), BurstOps: r.GetBurstOps()}
}

func claimOut(c node.Claim) (*pb.Claim, error) {
	volumes, err := volumesOut(c.Volumes)
	if err != nil {
		return nil, err
	}
	return &pb.Claim{Env: c.Env, Network: c.Network, Volumes: volumes, Cpu: int64(c.Budget.CPU), NetworkBytes: c.Budget.Network}, nil
}

func claimIn(c *pb.Claim) node.Claim {
	return node.Claim{Env: c.GetEnv(), Network: c.GetNetwork(), Volumes: each(c.GetVolumes(), volumeIn),
		Budget: node.Budget{CPU: time.Duration(c.GetCpu()), Network: c.GetNetworkBytes()}}
}

func runningOut(r *node.Running) *pb.Running {
	return &pb.Running{Id: r.ID, Took: int64(r.Took), Volumes: each(r.Volumes, func(m node.Mounted) *pb.Mounted {
		return &pb.Mounted{Spec: volumeOut(m.Spec), Bucket: m.Bucket}
	})}
}

func runningIn(r *pb.Running) *node.Running {
	return &node.Running{ID: r.GetId(), Took: time.Duration(r.GetTook()), Volumes: each(r.GetVolumes(), func(m *pb.Mounted) node.Mounted {
		return node.Mounted{Spec: volumeIn(m.GetSpec()), Bucket: m.GetBucket()}
	})}
}

// nanos and moment are times on the wire; the zero time is 0.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func statusOut(s node.Status) *pb.SandboxStatus {
	return &pb.SandboxStatus{Id: s.ID, Epoch: s.Epoch, Asleep: s.Asleep, Claimed: s.Claimed, Started: nanos(s.Started), Used: nanos(s.Used),
		NetworkIn: s.NetworkIn, NetworkOut: s.NetworkOut, Cpu: int64(s.CPU), Memory: s.Memory, MemoryPeak: s.MemoryPeak, MemoryShared: s.MemoryShared,
		Processes: int64(s.Processes), Output: s.Output, Written: s.Written, Rules: s.Rules}
}

func statusIn(s *pb.SandboxStatus) node.Status {
	return node.Status{ID: s.GetId(), Epoch: s.GetEpoch(), Asleep: s.GetAsleep(), Claimed: s.GetClaimed(), Started: moment(s.GetStarted()),
		Used: moment(s.GetUsed()), NetworkIn: s.GetNetworkIn(), NetworkOut: s.GetNetworkOut(), Rules: s.GetRules(), Stats: engine.Stats{CPU: time.Duration(s.GetCpu()),
			Memory: s.GetMemory(), MemoryPeak: s.GetMemoryPeak(), MemoryShared: s.GetMemoryShared(), Processes: int(s.GetProcesses()),
			Output: s.GetOutput(), Written: s.GetWritten()}}
}

func commandOut(id string, pid int, c engine.Cmd) *pb.Command {
	out := &pb.Command{Id: id, Pid: int32(pid), Args: c.Args, Env: c.Env, Dir: c.Dir, Root: c.Root, Keep: c.Keep, Own: c.Own}
	if c.TTY != nil {
		out.Tty = &pb.Size{Cols: uint32(c.TTY.Cols), Rows: uint32(c.TTY.Rows)}
	}
	for k, v := range c.Modes {
		if out.Modes == nil {
			out.Modes = map[uint32]uint32{}
		}
		out.Modes[uint32(k)] = v
	}
	return out
}

func commandIn(c *pb.Command) engine.Cmd {
	out := engine.Cmd{Args: c.GetArgs(), Env: c.GetEnv(), Dir: c.GetDir(), Root: c.GetRoot(), Keep: c.GetKeep(), Own: c.GetOwn()}
	if t := c.GetTty(); t != nil {
		out.TTY = &engine.Size{Cols: int(t.GetCols()), Rows: int(t.GetRows())}
	}
	for k, v := range c.GetModes() {
		if out.Modes == nil {
			out.Modes = map[byte]uint32{}
		}
		out.Modes[byte(k)] = v
	}
	return out
}

func fileOut(f *api.FileInfo) *pb.FileInfo {
	return &pb.FileInfo{Path: f.Path, Name: f.Name, Type: f.Type, Size: f.Size, Mode: f.Mode, Uid: f.UID, Gid: f.GID, Modified: nanos(f.Modified), Target: f.Target}
}

func fileIn(f *pb.FileInfo) *api.FileInfo {
	return &api.FileInfo{Path: f.GetPath(), Name: f.GetName(), Type: f.GetType(), Size: f.GetSize(), Mode: f.GetMode(), UID: f.GetUid(), GID: f.GetGid(),
		Modified: moment(f.GetModified()), Target: f.GetTarget()}
}
