package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"interlock/internal/bench"
)

// startEtcd starts a single member in this process. Its client calls it directly: no network is
// between, which is the best that it can do.
func startEtcd(dir string) (*clientv3.Client, func() error, error) {
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.LogOutputs = filepath.Join(dir, "etcd"), "fatal", []string{"/dev/null"}
	// Its sockets are files of its own directory: no port is taken on this machine.
	if err := os.Chdir(dir); err != nil {
		return nil, nil, err
	}
	peer, own := url.URL{Scheme: "unix", Host: "peer:1"}, url.URL{Scheme: "unix", Host: "client:1"}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{own}, []url.URL{own}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, nil, err
	}
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(30 * time.Second):
		e.Close()
		return nil, nil, errors.New("etcd is not ready after 30 s")
	}
	return v3client.New(e.Server), func() error { e.Close(); return nil }, nil
}

// etcdTxn: each client checks the revision of a key of its own, and writes it, in one transaction.
func etcdTxn(dir string, clients int) (func(time.Duration) (bench.Sample, error), func() error, error) {
	c, stop, err := startEtcd(dir)
	if err != nil {
		return nil, nil, err
	}
	at := make([]int64, clients)
	return load(clients, func(ctx context.Context, n int) error {
		key := fmt.Sprintf("local:bench#%d", n+1)
		answer, err := c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", at[n])).Then(clientv3.OpPut(key, value)).Commit()
		if err == nil && !answer.Succeeded {
			err = errors.New("a transaction of its own key was refused")
		}
		if err == nil {
			at[n] = answer.Header.Revision
		}
		return err
	}), stop, nil
}

// etcdLease: each client is granted a lease and puts its key under it.
func etcdLease(dir string, clients int) (func(time.Duration) (bench.Sample, error), func() error, error) {
	c, stop, err := startEtcd(dir)
	if err != nil {
		return nil, nil, err
	}
	return load(clients, func(ctx context.Context, n int) error {
		l, err := c.Grant(ctx, 3600)
		if err == nil {
			_, err = c.Put(ctx, fmt.Sprintf("local:bench#%d", n+1), value, clientv3.WithLease(l.ID))
		}
		return err
	}), stop, nil
}

// value has about the size of a holder.
const value = `{"id":"client-00000000000000000001","installation":"0123456789abcdef","host":"localhost","pid":1,"namespace":"pid:[4026531836]","start":1,"boot":"01234567-89ab-cdef-0123-456789abcdef"}`
