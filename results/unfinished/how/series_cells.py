import json
P='nbs/after/series.ipynb'; nb=json.load(open(P)); cells={c['id']:c for c in nb['cells']}
def rep(i,*pairs):
    s=''.join(cells[i]['source'])
    for a,b in pairs:
        assert s.count(a)==1,(i,s.count(a),a); s=s.replace(a,b)
    cells[i]['source']=s.splitlines(True)
rep('series-record-table',('''    for side in ("naive", "seasonal naive", "linear", "Transformer"):
''','''    for side in ("naive", "seasonal naive", "linear", *NORMS):
'''),('CONTEXTS, HORIZONS = (336, 512), (96, 192)\n','CONTEXTS, HORIZONS = (336, 512), (96, 192)\nNORMS = "Transformer", "Transformer, batch norm"\n'))
rep('series-record-mae-table',('''def lowest(back, ahead, stride):
    "The lowest validation error of the trials with this stride."
    wanted = {"context": back, "horizon": ahead, "stride": stride, "seed": 0}
    found =''','''def lowest(side, back, ahead, stride):
    "The lowest validation error of a side's trials with this stride."
    wanted = {"side": side, "context": back, "horizon": ahead}
    wanted |= {"stride": stride, "seed": 0}
    found ='''),('''    [back, ahead, lowest(back, ahead, 8), lowest(back, ahead, 16)]
    for back in CONTEXTS
''','''    [side, back, ahead, *(lowest(side, back, ahead, stride) for stride in (8, 16))]
    for side in NORMS
    for back in CONTEXTS
'''),('Table(["from hours", "hours ahead", "overlapping", "side by side"], rows, 3)','Table(["", "from hours", "hours ahead", "overlapping", "side by side"], rows, 3)'))
rep('series-record-cost-table',('''        ours = of("Transformer", back, ahead, "mse")
''','''        ours = [mse for side in NORMS for mse in of(side, back, ahead, "mse")]
'''),('assert len(ours) == 3 and','assert len(ours) == 6 and'),('trained = [run for run in runs if run.get("device") == "cpu"]','trained = [r for r in runs if (r["side"], r.get("device")) == (NORMS[0], "cpu")]'))
json.dump(nb,open(P,'w'),indent=1,ensure_ascii=False); open(P,'a').write('\n')
