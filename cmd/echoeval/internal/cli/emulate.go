package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/echoeval/echoeval/core/failure"
	"github.com/echoeval/echoeval/harness/emulator"
	"github.com/echoeval/echoeval/harness/localhost"
)

type emulateOptions struct {
	script, listen, addressFile string
	realTime                    bool
}

func newEmulate(s *State) *cobra.Command {
	var o emulateOptions
	cmd := &cobra.Command{
		Use: "emulate", Short: "Serve scripted answers in a vendor's wire format", GroupID: "more", Args: between(0, 0, "no arguments"),
		Long: "Serve scripted answers in the wire format of a vendor, on a loopback address. Without --script every request is answered with a short text.\n\n" +
			"Record against it with `echoeval record DATASET --upstream openai=http://ADDRESS/v1 --upstream anthropic=http://ADDRESS --upstream gemini=http://ADDRESS --upstream bedrock=http://ADDRESS`.",
		RunE: func(cmd *cobra.Command, _ []string) error { return runEmulate(cmd.Context(), s, o) },
	}
	cmd.Flags().StringVar(&o.script, "script", "", "the script file (YAML)")
	cmd.Flags().StringVar(&o.listen, "listen", "127.0.0.1:0", "the loopback address to listen on; port 0 takes a free one")
	cmd.Flags().StringVar(&o.addressFile, "address-file", "", "write the address to this file once the server listens")
	cmd.Flags().BoolVar(&o.realTime, "real-time", false, "wait out the latencies of the script")
	return cmd
}

func runEmulate(ctx context.Context, s *State, o emulateOptions) error {
	script, err := loadScript(s, o.script)
	if err != nil {
		return err
	}
	handler, err := emulator.New(script, emulator.Options{RealTime: o.realTime})
	if err != nil {
		return err
	}
	listener, err := s.listen(o.listen, o.addressFile)
	if err != nil {
		return err
	}
	address := listener.Addr()
	fmt.Fprintf(s.Stderr, "script %s on http://%s/v1 (interrupt to stop)\nhint: echoeval record DATASET --upstream openai=http://%s/v1\n", script.Name, address, address)
	ctx, stop := s.interruptible(ctx)
	defer stop()
	return emulator.Serve(ctx, listener, handler)
}

// listen listens on a loopback address, and writes which it is into a file where one is named.
func (s *State) listen(address, file string) (net.Listener, error) {
	listener, err := localhost.Listen(address)
	if err != nil || file == "" {
		return listener, err
	}
	if err := writeWhole(s.path(file), []byte(listener.Addr().String()+"\n")); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

func loadScript(s *State, name string) (emulator.Script, error) {
	if name == "" {
		return emulator.Echo()
	}
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		return emulator.Script{}, failure.WithHint(failure.New(failure.Input, "script %s cannot be read", name), "check the path")
	}
	return emulator.Load(name, data)
}

// writeWhole writes a file so that a reader finds either nothing or all of it. A link stays one; what is no regular file is left alone.
func writeWhole(path string, data []byte) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return usage("name a file, or a path where there is none yet", "%s is no regular file", filepath.Base(path))
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return failure.New(failure.Internal, "%s cannot be written: %s", filepath.Base(path), failure.Reason(err))
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return failure.New(failure.Internal, "%s cannot be written: %s", filepath.Base(path), failure.Reason(errors.Join(err, os.Remove(f.Name()))))
	}
	return nil
}
